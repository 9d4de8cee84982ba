"""Groups in the console: one page with members, access, limit and permissions."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.catalog import agent_versions
from agents.console.admin_classes import deleted_rows
from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.console.metering.budgets import RELATED, budget_rows
from agents.metering.budgets import scopes
from agents.models import Agent, Collection, Deletion, Document, Quota
from agents.models.catalog.rights import Role, exclusive_to, group_label
from agents.models.types import LazyText
from agents.web.people_suggestions import find_people

from ..authentication import factors, sessions
from . import roles
from .forms import grantable_groups, granted_permissions
from .group_form import ACCESS, AccessKind, GroupForm, main_limit, other_permissions
from .group_switches import (
    PERMISSION_COLUMNS,
    opens_console,
    permissions_of,
    set_switches,
    switches_on,
)

MAX_LISTED_MEMBERS = 100
ADVANCED = "advanced"  # Django's list of all permissions, in the address


class GroupAdmin(ConsoleAdmin):
    """Groups control who can use what, and add permissions to the role of their members."""

    form = GroupForm
    list_display = ["label", "what", "people"]
    change_form_template = "admin/people/group.html"
    search_fields = ["name"]
    filter_horizontal = ["permissions"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return ["permissions"] if self._is_advanced(request, obj) else ["name"]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        if self._is_advanced(request, obj):
            return super().get_form(request, obj, change, form=forms.ModelForm, **options)
        form_class = super().get_form(request, obj, change, **options)
        return type(form_class.__name__, (form_class,), {"editor": request.user})

    def _is_advanced(self, request: HttpRequest, group: Group | None) -> bool:
        return request.user.is_superuser and group is not None and ADVANCED in request.GET

    @admin.display(description=_("name"), ordering="name")
    def label(self, group: Group) -> LazyText:
        return group_label(group)

    @admin.display(description=_("type"))
    def what(self, group: Group) -> LazyText:
        return capfirst(_("role") if _is_role(group) else _("group"))

    @admin.display(description=_("users"))
    def people(self, group: Group) -> str:
        names = group.user_set.order_by("username").values_list("username", flat=True)
        return ", ".join(names[:20]) + (" …" if len(names) > 20 else "") or "—"

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Roles can't be edited, because they are the same in every installation."""
        may = super().has_change_permission(request, obj)
        return may and (obj is None or (self._can_manage(request, obj) and not _is_role(obj)))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or (self._can_manage(request, obj) and not _is_role(obj)))

    def _can_manage(self, request: HttpRequest, group: Group) -> bool:
        is_grantable = grantable_groups(signed_in_user(request)).filter(pk=group.pk).exists()
        return request.user.is_superuser or is_grantable

    def may_restore(self, user: User, deletion: Deletion) -> bool:
        """A group that grants more than the user has can't be restored by them."""
        if user.is_superuser:
            return True
        link_model = Group.permissions.through
        rows = [row for row in deleted_rows.read(deletion) if isinstance(row, link_model)]
        permissions = Permission.objects.filter(pk__in=[row.permission_id for row in rows])
        own_permissions = granted_permissions(user)
        return all(
            f"{app}.{name}" in own_permissions
            for app, name in permissions.values_list(*PERMISSION_COLUMNS)
        )

    def rows_to_restore(self, deletion: Deletion, rows: list[Model]) -> list[Model]:
        """Leave out users' collections that were changed since: only they could read them."""
        shared = Collection.groups.through
        links = [row for row in rows if isinstance(row, shared)]
        since = Q(added_at__gt=deletion.created_at) | Q(indexed_at__gt=deletion.created_at)
        changed = Document.objects.filter(
            since,
            collection__in=[link.collection_id for link in links],
            collection__owner__isnull=False,
        )
        private = set(changed.values_list("collection", flat=True))
        withheld = [link for link in links if link.collection_id in private]
        restored = Group.objects.filter(pk=deletion.object_id)
        transaction.on_commit(lambda: _update_members(_console_members(restored)))
        return [row for row in rows if row not in withheld]

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Protect rows that would become available to everyone without this group."""
        objects, count, missing, protected = super().get_deleted_objects(objs, request)
        rows = exclusive_to([group.pk for group in objs])
        names = [f"{capfirst(row._meta.verbose_name)}: {row}" for row in rows]
        return objects, count, missing, [*protected, *names]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        members = _console_members([obj])
        super().delete_model(request, obj)
        _update_members(members)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Group]) -> None:
        for group in queryset:
            if not self.has_delete_permission(request, group):
                raise PermissionDenied
        members = _console_members(queryset)
        super().delete_queryset(request, queryset)
        _update_members(members)

    def get_urls(self) -> list[URLPattern]:
        suggestions = self.admin_site.admin_view(self.suggestions_view)
        return [
            path("people/", suggestions, name="people_group_suggestions"),
            *super().get_urls(),
        ]

    @method_decorator(require_GET)
    def suggestions_view(self, request: HttpRequest) -> HttpResponse:
        """Return users whose name or email address starts with the typed text."""
        if not request.user.has_perms(["auth.view_group", "auth.change_user"]):
            raise PermissionDenied
        people = find_people(request.GET.get("name", ""), members=(), has_emails=True)
        response = render(request, "layout/_people_suggestions.html", {"people": people})
        response["Cache-Control"] = "no-store"
        return response

    # The page

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        group = options.get("obj")
        context["is_advanced"] = self._is_advanced(request, group)
        if not context["is_advanced"]:
            context |= self._page_context(request, group, context["adminform"].form)
        return super().render_change_form(request, context, *args, **options)

    def _page_context(self, request: HttpRequest, group: Group | None, form: Any) -> Any:
        may_change = self.has_change_permission(request, group)
        context: dict[str, Any] = {
            "group": group,
            "is_role": group is not None and _is_role(group),
            "may_change": may_change,
            "access": [_access(kind, group, form, may_change) for kind in ACCESS],
        }
        if may_change:
            chosen = _chosen(form, "switches")
            context["switches"] = [
                {"switch": switch, "is_on": switch.key in chosen, "may": may}
                for switch, may in form.grantable_switches()
            ]
            context["added_names"] = form["add"].value() if "add" in form.fields else []
        if group is None:
            return context
        members = group.user_set.select_related("profile").order_by("username")
        count = members.count()
        context |= {
            "members": members[:MAX_LISTED_MEMBERS],
            "member_count": count,
            "removed": _chosen(form, "remove"),
            "other_permissions": other_permissions(group),
            "switches_on": switches_on(permissions_of(group)),
        }
        if context["is_role"]:
            context["subtitle"] = group_label(group)
            context["role_text"] = roles.DESCRIPTIONS[Role(group.name)]
        if request.user.has_perm("agents.view_quota"):
            main = main_limit(group) if may_change and "limit" in form.fields else None
            rows = Quota.objects.filter(group=group).select_related(*RELATED)
            budgets = budget_rows(rows)
            query = urlencode({"scope": scopes.SHARED, "group": str(group.pk)})
            context |= {
                "main_budget": next((b for b in budgets if b.row == main), None),
                "other_budgets": [b for b in budgets if b.row != main],
                "add_budget_url": f"{reverse('admin:agents_quota_add')}?{query}",
            }
        return context

    # Saving

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        group = form.instance
        was_open = change and opens_console(group)
        super().save_related(request, form, formsets, change)
        if isinstance(form, GroupForm):
            set_switches(group, form.cleaned_data["switches"])
            self._save_access(request, form)
            self._save_members(request, form)
            if changes := form.save_limit() if "limit" in form.fields else {}:
                audit.record(request.user, audit.QUOTA_CHANGED, group, changes=changes)
        members = list(group.user_set.values_list("pk", flat=True))
        if was_open or opens_console(group):
            removed = form.cleaned_data.get("remove", [])
            _update_members([*members, *(person.pk for person in removed)])
        for person in members:
            sessions.recheck_access(person)

    def _save_members(self, request: HttpRequest, form: GroupForm) -> None:
        added = form.cleaned_data.get("add", [])
        removed = form.cleaned_data.get("remove", [])
        group = form.instance
        group.user_set.add(*added)
        group.user_set.remove(*removed)
        for person in [*added, *removed]:
            names = sorted(person.groups.values_list("name", flat=True))
            audited = factors.audit_subject(person)
            audit.record(request.user, audit.RIGHTS_CHANGED, audited, groups=names)
            sessions.recheck_access(person.pk)

    def _save_access(self, request: HttpRequest, form: GroupForm) -> None:
        for kind in ACCESS:
            if kind.field in form.cleaned_data:
                self._save_kind(request, form.instance, kind, form.cleaned_data[kind.field])

    def _save_kind(
        self, request: HttpRequest, group: Group, kind: AccessKind, chosen: Any
    ) -> None:
        """Give and take rows, with entries in the history of each and versions of agents."""
        chosen_pks = {row.pk for row in chosen}
        row_admin: Any = self.admin_site.get_model_admin(kind.model)
        for row in kind.rows().prefetch_related("groups"):
            before = [allowed.name for allowed in row.groups.all()]
            is_chosen = row.pk in chosen_pks
            if is_chosen == (group.name in before):
                continue
            if kind.model is Agent:
                agent_versions.save(row, None)  # a first one, so that this can be undone
            if is_chosen:
                row.groups.add(group)
            else:
                row.groups.remove(group)
            names = list(row.groups.values_list("name", flat=True))
            vars(request)["changes"] = {"groups": [before, names]}
            row_admin.log_change(request, row, [{"changed": {"fields": ["groups"]}}])
            if kind.model is Agent:
                note = _now("Access of the group %(name)s.") % {"name": group.name}
                agent_versions.save(row, signed_in_user(request), note)

    def keep(self, request: HttpRequest, action: str, row: Any, changes: Any = None) -> None:
        """Record no names of members: each has an entry of their own."""
        changes = {
            name: change
            for name, change in (changes or {}).items()
            if name not in {"add", "remove"}
        }
        super().keep(request, action, row, changes)


def _is_role(group: Group) -> bool:
    return group.name in Role.values


def _access(kind: AccessKind, group: Group | None, form: Any, may_change: bool) -> Any:
    """Return what the page displays of a kind: what the group has, and what it can be given."""
    rows = kind.listed(group or Group())
    return {
        "kind": kind,
        "own": [row for row in rows if row.is_on],
        "limited": [row for row in rows if not row.is_for_everyone],
        "open": [row for row in rows if row.is_for_everyone],
        "chosen": _chosen(form, kind.field),
        "field": form[kind.field] if may_change and kind.field in form.fields else None,
    }


def _chosen(form: Any, field: str) -> set[str]:
    """Return the chosen values of a field as text, also of a form with errors."""
    return (
        {str(value) for value in form[field].value() or ()} if field in form.fields else set()
    )


def _console_members(groups: Iterable[Group]) -> list[int]:
    """Return the members of those groups that open the console."""
    opening = [group.pk for group in groups if opens_console(group)]
    return list(User.objects.filter(groups__in=opening).distinct().values_list("pk", flat=True))


def _update_members(members: list[int]) -> None:
    for person in User.objects.filter(pk__in=members):
        roles.update_console_access(person)
