"""Users and groups in the console, and its sign-in page."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from django.contrib import admin, messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Max, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.encoding import force_bytes
from django.utils.formats import date_format
from django.utils.http import urlsafe_base64_encode
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.console import health_checks
from agents.console.model_admin import ConsoleAdmin
from agents.models.rights import Role, exclusive_to, group_label
from agents.models.types import LazyText

from . import factors, invitation_admin, roles, sessions
from .forms import PersonForm, can_edit_user, grantable_groups
from .models import Visit
from .sign_in import sso_name
from .views.sign_in import sign_out

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class LastSeen(TypedDict):
    seen: datetime | None


ListedUser: TypeAlias = "WithAnnotations[User, LastSeen]"


@admin.action(description=_("Revoke all sessions"))
def sign_out_everywhere(console: Any, request: HttpRequest, people: QuerySet) -> None:
    theirs = [person for person in people if can_edit_user(signed_in_user(request), person)]
    count = sessions.end(Visit.objects.filter(user__in=theirs))
    for person in theirs:
        audit.record(request.user, audit.SESSION_ENDED, factors.audit_subject(person))
    messages.success(
        request,
        ngettext("%(count)d session revoked.", "%(count)d sessions revoked.", count)
        % {"count": count},
    )


class GroupFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        return [(group.pk, group_label(group)) for group in Group.objects.order_by("name")]


class PersonAdmin(ConsoleAdmin):
    form = PersonForm
    change_form_template = "admin/people/person.html"
    list_display = ["username", "full_name", "role", "in_groups", "is_active", "last_seen"]
    list_filter = ["is_active", ("groups", GroupFilter)]
    search_fields = ["username", "first_name", "last_name", "email"]
    ordering = ["username"]
    actions = [sign_out_everywhere]
    readonly_fields = ["date_joined", "last_seen", "ways"]

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        people = super().get_queryset(request).prefetch_related("groups")
        return people.annotate(seen=Max("visits__seen_at"))

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **options)
        return type(form.__name__, (form,), {"asker": request.user})

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        who = (None, {"fields": ["username", "first_name", "last_name", "email"]})
        may = ["role", "groups", *(["apart"] if request.user.is_superuser else [])]
        rights = (_("Permissions"), {"fields": may})
        if obj is None:
            return [who, rights]
        seen = (_("Sign-in"), {"fields": ["is_active", *self.readonly_fields]})
        return [who, rights, seen]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_change_permission(request, obj)
        return may and (obj is None or can_edit_user(signed_in_user(request), obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Users are deactivated, not deleted, so that their data stays."""
        return False

    @admin.display(description=_("name"))
    def full_name(self, person: User) -> str:
        return person.get_full_name() or "—"

    @admin.display(description=_("role"))
    def role(self, person: User) -> LazyText:
        return roles.get_role(person).label

    @admin.display(description=_("groups"))
    def in_groups(self, person: User) -> str:
        names = [group.name for group in person.groups.all() if group.name not in Role.values]
        return ", ".join(names) or "—"

    @admin.display(description=_("last active"), ordering="seen")
    def last_seen(self, person: ListedUser) -> str:
        seen = person.seen or person.last_login
        return date_format(localtime(seen), "DATETIME_FORMAT") if seen else "—"

    @admin.display(description=_("sign-in methods"))
    def ways(self, person: User) -> str:
        return " · ".join(factors.sign_in_methods(person)) or "—"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.set_unusable_password()
        obj.save()
        if change and "is_active" in form.changed_data:
            self._on_active_changed(request, obj)

    def _on_active_changed(self, request: HttpRequest, person: User) -> None:
        if person.is_active:
            audit.record(request.user, audit.PERSON_ACTIVATED, factors.audit_subject(person))
            return
        sessions.end(person.visits.all())
        sessions.recheck_access(person.pk)
        transaction.on_commit(partial(sessions.stop_runs, person))
        audit.record(request.user, audit.PERSON_DEACTIVATED, factors.audit_subject(person))

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        person, cleaned = form.instance, form.cleaned_data
        super().save_related(request, form, formsets, change)
        roles.set_role(person, Role(cleaned["role"]))
        if "apart" in form.fields:
            others = person.user_permissions.exclude(codename__in=roles.INDIVIDUAL_PERMISSIONS)
            person.user_permissions.set([*others, *cleaned["apart"]])
        if not change:
            audit.record(request.user, audit.PERSON_ADDED, factors.audit_subject(person))
        if {"role", "groups", "apart"} & {*form.changed_data}:
            self._record_permissions(request, person)

    def _record_permissions(self, request: HttpRequest, person: User) -> None:
        names = sorted(person.groups.values_list("name", flat=True))
        apart = sorted(person.user_permissions.values_list("codename", flat=True))
        about = {"role": roles.get_role(person), "groups": names, "apart": apart}
        audit.record(request.user, audit.RIGHTS_CHANGED, factors.audit_subject(person), **about)
        sessions.recheck_access(person.pk)

    def keep(self, request: HttpRequest, action: str, row: Any, changes: Any = None) -> None:
        """Record that a name or address was changed, but not to what."""
        other_fields = sorted({*(changes or ())} - {"role", "groups", "apart", "is_active"})
        if action == audit.CHANGED and other_fields:
            subject = factors.audit_subject(row)
            audit.record(request.user, audit.PERSON_CHANGED, subject, changes=other_fields)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: Any = None
    ) -> HttpResponse:
        return self._render_password_link(request, obj)

    def get_urls(self) -> list[URLPattern]:
        def page(way: str, view: Any, name: str) -> URLPattern:
            guarded = self.admin_site.admin_view(require_POST(view))
            return path(way, guarded, name=f"people_{name}")

        own = [
            page("<int:pk>/link/", self.link, "link"),
            page("<int:pk>/factors/remove/", self.remove_factors, "remove_factors"),
            page("<int:pk>/sessions/end/", self.end_all, "end_all"),
            page("<int:pk>/sessions/<int:visit>/end/", self.end_one, "end_one"),
        ]
        return [*own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        person = self.get_object(request, object_id)
        more = {} if person is None else self._extra_context(request, person)
        kwargs["extra_context"] = {**(kwargs.get("extra_context") or {}), **more}
        return super().change_view(request, object_id, *args, **kwargs)

    def _extra_context(self, request: HttpRequest, person: User) -> dict[str, Any]:
        theirs = Visit.objects.for_user(person)
        return {
            "person": person,
            "may_touch": self.has_change_permission(request, person),
            "visits": [(visit, sessions.device_name(visit.device)) for visit in theirs],
            "has_factor": factors.has_second_factor(person),
        }

    def link(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Display a link to choose a password, once."""
        return self._render_password_link(request, self._get_person(request, pk))

    def _render_password_link(self, request: HttpRequest, person: User) -> HttpResponse:
        uid = urlsafe_base64_encode(force_bytes(person.pk))
        token = default_token_generator.make_token(person)
        address = request.build_absolute_uri(reverse("people:welcome", args=[uid, token]))
        audit.record(request.user, audit.PASSWORD_LINK, factors.audit_subject(person))
        title = _("Password link for %(name)s") % {"name": person.get_username()}
        about = {"title": title, "person": person, "link": address}
        about |= self.admin_site.each_context(request)
        response = render(request, "admin/people/link.html", about)
        response["Cache-Control"] = "no-store"
        return response

    def remove_factors(self, request: HttpRequest, pk: int) -> HttpResponse:
        person = self._get_person(request, pk)
        factors.remove_all(person, signed_in_user(request))
        sessions.end(person.visits.all())
        return self._redirect_to_person(
            request,
            person,
            _(
                "Two-factor authentication was reset. The user can now sign "
                "in with just a password."
            ),
        )

    def end_one(self, request: HttpRequest, pk: int, visit: int) -> HttpResponse:
        person = self._get_person(request, pk)
        if not sessions.end(person.visits.filter(pk=visit)):
            raise Http404
        audit.record(request.user, audit.SESSION_ENDED, factors.audit_subject(person))
        return self._redirect_to_person(request, person, _("Session revoked."))

    def end_all(self, request: HttpRequest, pk: int) -> HttpResponse:
        person = self._get_person(request, pk)
        sessions.end(person.visits.all())
        audit.record(request.user, audit.SESSION_ENDED, factors.audit_subject(person))
        return self._redirect_to_person(request, person, _("All sessions revoked."))

    def _get_person(self, request: HttpRequest, pk: int) -> Any:
        person = User._default_manager.filter(pk=pk).first()
        if person is None or not self.has_change_permission(request, person):
            raise Http404
        return person

    def _redirect_to_person(
        self, request: HttpRequest, person: User, sentence: Any
    ) -> HttpResponse:
        messages.success(request, sentence)
        return redirect("admin:auth_user_change", person.pk)


class GroupAdmin(ConsoleAdmin):
    """Groups control who can use what. Only a superuser grants them other permissions."""

    list_display = ["label", "what", "people"]
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
        return _("role") if _is_role(group) else _("group")

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

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        for person in form.instance.user_set.values_list("pk", flat=True):
            sessions.recheck_access(person)


def _is_role(group: Group) -> bool:
    return group.name in Role.values


__all__ = ["GroupAdmin", "PersonAdmin", "invitation_admin"]

admin.site.unregister([User, Group])
admin.site.register(User, PersonAdmin)
admin.site.register(Group, GroupAdmin)


@login_not_required
def sign_in(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """Redirect to the common sign-in page; signed-in users without access get an error."""
    onward = request.GET.get("next") or reverse("admin:index")
    if not request.user.is_authenticated:
        return redirect_to_login(onward)
    if not admin.site.has_permission(request):
        raise PermissionDenied
    return redirect("admin:index")


def password_change(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    return redirect("people:account")


def logout(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    return sign_out(request)


def check_single_sign_on() -> Iterator[health_checks.HealthCheck]:
    """Check the identity provider, if there is one; its library slows down every start."""
    if sso_name():
        module = import_module("agents.accounts.provider_check")
        yield from module.health_check()


health_checks.MORE_CHECKS.append(check_single_sign_on)

site: Any = admin.site
site.login = sign_in
site.password_change = password_change
site.logout = logout
