"""Groups in the console: members, what they open, and their quotas."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.console.admin_classes import deleted_rows
from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.models import Collection, Deletion, Document
from agents.models.catalog.rights import Role, exclusive_to, group_label
from agents.models.types import LazyText

from ..authentication import factors, sessions
from . import access_view, quota_view, roles
from .forms import can_edit_user, grantable_groups, granted_permissions

RIGHT_COLUMNS = ("content_type__app_label", "codename")


class GroupAdmin(ConsoleAdmin):
    """Groups control who can use what. Only a superuser grants them other permissions."""

    list_display = ["label", "what", "people"]
    change_form_template = "admin/people/group.html"
    search_fields = ["name"]
    filter_horizontal = ["permissions"]
    readonly_fields = ["label", "may", "people"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj is not None and _is_role(obj):
            return ["label", "may", "people"]
        fields = ["name", "people"] if obj is not None else ["name"]
        return [*fields, "permissions"] if request.user.is_superuser else fields

    @admin.display(description=_("name"), ordering="name")
    def label(self, group: Group) -> LazyText:
        return group_label(group)

    @admin.display(description=_("type"))
    def what(self, group: Group) -> LazyText:
        return capfirst(_("role") if _is_role(group) else _("group"))

    @admin.display(description=_("Permissions"))
    def may(self, group: Group) -> LazyText:
        return roles.DESCRIPTIONS[Role(group.name)]

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
            for app, name in permissions.values_list(*RIGHT_COLUMNS)
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
        return [row for row in rows if row not in withheld]

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Protect rows that would become available to everyone without this group."""
        objects, count, missing, protected = super().get_deleted_objects(objs, request)
        rows = exclusive_to([group.pk for group in objs])
        names = [f"{capfirst(row._meta.verbose_name)}: {row}" for row in rows]
        return objects, count, missing, [*protected, *names]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Group]) -> None:
        for group in queryset:
            if not self.has_delete_permission(request, group):
                raise PermissionDenied
        super().delete_queryset(request, queryset)

    def get_urls(self) -> list[URLPattern]:
        def admin_path(route: str, view: Any, name: str) -> URLPattern:
            guarded = self.admin_site.admin_view(require_POST(view))
            return path(f"<int:pk>/{route}/", guarded, name=f"people_group_{name}")

        own = [
            admin_path("quotas", self.save_quotas, "quotas"),
            admin_path("members/add", self.add_member, "add_member"),
            admin_path("members/<int:user>/remove", self.remove_member, "remove_member"),
        ]
        return [*own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        group = self.get_object(request, object_id)
        if group is not None:
            candidates = User.objects.exclude(groups=group).filter(is_active=True)
            kwargs["extra_context"] = {
                **(kwargs.get("extra_context") or {}),
                "group": group,
                "is_role": _is_role(group),
                "abilities": roles.ABILITIES,
                "members": group.user_set.order_by("username"),
                "others": candidates.order_by("username").values_list("username", flat=True)[
                    :500
                ],
                "opened": access_view.for_group(group),
                "quota_form": quota_view.QuotaForm(group),
                "may_limit": request.user.has_perm("agents.change_quota"),
                "may_touch": self.has_change_permission(request, group),
            }
        return super().change_view(request, object_id, *args, **kwargs)

    def save_quotas(self, request: HttpRequest, pk: int) -> HttpResponse:
        quota_view.save_form(request, self._get_group(request, pk, is_role_allowed=True))
        return redirect(f"{reverse('admin:auth_group_change', args=[pk])}#quotas")

    def add_member(self, request: HttpRequest, pk: int) -> HttpResponse:
        group = self._get_group(request, pk)
        name = request.POST.get("username", "").strip().replace("\0", "")[:150]
        person = User.objects.filter(username=name).first()
        if person is None:
            messages.error(request, _("There's no user named %(name)s.") % {"name": name})
        else:
            self._change_member(request, group, person, group.user_set.add)
            messages.success(
                request, _("%(name)s is now a member.") % {"name": person.get_username()}
            )
        return redirect("admin:auth_group_change", pk)

    def remove_member(self, request: HttpRequest, pk: int, user: int) -> HttpResponse:
        group = self._get_group(request, pk)
        person = group.user_set.filter(pk=user).first()
        if person is None:
            raise Http404
        self._change_member(request, group, person, group.user_set.remove)
        messages.success(
            request, _("%(name)s is no longer a member.") % {"name": person.get_username()}
        )
        return redirect("admin:auth_group_change", pk)

    def _change_member(
        self, request: HttpRequest, group: Group, person: User, change: Any
    ) -> None:
        may_edit = request.user.has_perm("auth.change_user")
        if not may_edit or not can_edit_user(signed_in_user(request), person):
            raise PermissionDenied
        change(person)
        names = sorted(person.groups.values_list("name", flat=True))
        audited = factors.audit_subject(person)
        audit.record(request.user, audit.RIGHTS_CHANGED, audited, groups=names)
        sessions.recheck_access(person.pk)

    def _get_group(self, request: HttpRequest, pk: int, is_role_allowed: bool = False) -> Group:
        group = Group.objects.filter(pk=pk).first()
        if not admin.ModelAdmin.has_change_permission(self, request):
            raise PermissionDenied
        if group is None or (_is_role(group) and not is_role_allowed):
            raise Http404
        if not _is_role(group) and not self._can_manage(request, group):
            raise PermissionDenied
        return group

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        for person in form.instance.user_set.values_list("pk", flat=True):
            sessions.recheck_access(person)


def _is_role(group: Group) -> bool:
    return group.name in Role.values
