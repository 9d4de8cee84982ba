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
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.api_keys import is_service_account
from agents.access.requests import signed_in_user
from agents.access.visitors import is_visitor
from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.console.system import health_checks
from agents.metering import budgets
from agents.metering.figures import catch_up
from agents.metering.figures.totals import NANOS
from agents.models.catalog.rights import Role
from agents.models.types import LazyText
from agents.web.presentation.formats import formatting
from agents.web.presentation.formats.badges import badge
from agents.web.presentation.formats.dates import timestamp

from .authentication import factors, sessions
from .models import Invitation, Visit
from .oauth_server import app_admin
from .sign_in import sso_name
from .users import (
    access_view,
    api_key_admin,
    invitation_admin,
    people_list,
    quota_view,
    roles,
    roles_page,
)
from .users.forms import PersonForm, can_edit_user
from .users.group_admin import GroupAdmin
from .views.sign_in import sign_out

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class LastSeen(TypedDict):
    seen: datetime | None


ListedUser: TypeAlias = "WithAnnotations[User, LastSeen]"


class PersonAdmin(ConsoleAdmin):
    can_restore = False
    form = PersonForm
    change_form_template = "admin/people/person.html"
    change_list_template = "admin/people/people.html"
    list_display = [
        "username",
        "full_name",
        "email",
        "role",
        "in_groups",
        "state",
        "last_seen",
        "mfa",
        "month",
    ]
    list_filter = [
        people_list.RoleFilter,
        ("groups", people_list.GroupFilter),
        people_list.StateFilter,
    ]
    list_per_page = 50
    action_form = people_list.PeopleActionForm
    search_fields = ["username", "first_name", "last_name", "email"]
    ordering = ["username"]
    actions = [
        people_list.deactivate,
        people_list.add_to_group,
        people_list.sign_out_everywhere,
    ]
    readonly_fields = ["date_joined", "last_seen", "ways"]

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        people = super().get_queryset(request).prefetch_related("groups")
        return people_list.annotate(people.annotate(seen=Max("visits__seen_at")))

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form_class = super().get_form(request, obj, change, **options)
        return type(form_class.__name__, (form_class,), {"editor": request.user})

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        names = ["username", "first_name", "last_name", "email"]
        if obj is not None and obj.is_service:
            names.remove("email")  # with which single sign-on would open the account
        identity = (None, {"fields": names})
        permission_fields = [
            "role",
            "groups",
            *(["apart"] if request.user.is_superuser else []),
        ]
        permissions = (_("Permissions"), {"fields": permission_fields})
        if obj is None:
            return [identity, permissions]
        sign_in_status = (_("Sign-in"), {"fields": ["is_active", *self.readonly_fields]})
        return [identity, permissions, sign_in_status]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_change_permission(request, obj)
        if obj is None or not may:
            return may
        # What visitors may do is up to their group.
        return can_edit_user(signed_in_user(request), obj) and not is_visitor(obj.pk)

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

    @admin.display(description=_("state"), ordering="is_active")
    def state(self, person: Any) -> Any:
        label, tone = people_list.STATE_LABELS[people_list.state_of(person)]
        return badge(label, tone)

    @admin.display(description=_("two-factor"), ordering="has_mfa", boolean=True)
    def mfa(self, person: Any) -> bool:
        return bool(person.has_mfa)

    @admin.display(description=_("used this month"), ordering="month_tokens")
    def month(self, person: Any) -> str:
        if not person.month_tokens:
            return "—"
        tokens = budgets.format_amount("tokens", person.month_tokens)
        cost = formatting.cost(person.month_cost / NANOS)
        return f"{tokens} · {cost}" if person.month_cost else tokens

    @admin.display(description=_("last active"), ordering="seen")
    def last_seen(self, person: ListedUser) -> str:
        seen_at = person.seen or person.last_login
        return timestamp(seen_at)

    @admin.display(description=_("sign-in methods"))
    def ways(self, person: User) -> str:
        return " · ".join(factors.sign_in_methods(person)) or "—"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.set_unusable_password()
        obj.save()
        if change and "is_active" in form.changed_data:
            self.on_active_changed(request, obj)

    def on_active_changed(self, request: HttpRequest, person: User) -> None:
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
        person = form.instance
        super().save_related(request, form, formsets, change)
        roles.set_role(person, Role(form.cleaned_data["role"]))
        if "apart" in form.fields:
            fixed = person.user_permissions.exclude(codename__in=roles.INDIVIDUAL_PERMISSIONS)
            person.user_permissions.set([*fixed, *form.cleaned_data["apart"]])
        if not change:
            audit.record(request.user, audit.PERSON_ADDED, factors.audit_subject(person))
        if {"role", "groups", "apart"} & {*form.changed_data}:
            self.record_permissions(request, person)

    def record_permissions(self, request: HttpRequest, person: User) -> None:
        audit.record(
            request.user,
            audit.RIGHTS_CHANGED,
            factors.audit_subject(person),
            role=roles.get_role(person),
            groups=sorted(person.groups.values_list("name", flat=True)),
            apart=sorted(person.user_permissions.values_list("codename", flat=True)),
        )
        sessions.recheck_access(person.pk)

    def keep(self, request: HttpRequest, action: str, row: Any, changes: Any = None) -> None:
        """Record that a name or address was changed, but not to what."""
        other_fields = sorted({*(changes or ())} - {"role", "groups", "apart", "is_active"})
        if action == audit.CHANGED and other_fields:
            audited = factors.audit_subject(row)
            audit.record(request.user, audit.PERSON_CHANGED, audited, changes=other_fields)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: Any = None
    ) -> HttpResponse:
        return self._render_password_link(request, obj)

    def get_urls(self) -> list[URLPattern]:
        def admin_path(route: str, view: Any, name: str) -> URLPattern:
            guarded = self.admin_site.admin_view(require_POST(view))
            return path(route, guarded, name=f"people_{name}")

        own = [
            admin_path("reactivate/", self.reactivate, "reactivate"),
            admin_path("<int:pk>/quotas/", self.save_quotas, "user_quotas"),
            admin_path("<int:pk>/link/", self.link, "link"),
            admin_path("<int:pk>/factors/remove/", self.remove_factors, "remove_factors"),
            admin_path("<int:pk>/sessions/end/", self.end_all, "end_all"),
            admin_path("<int:pk>/sessions/<int:visit>/end/", self.end_one, "end_one"),
        ]
        roles_view = self.admin_site.admin_view(roles_page.page)
        own.append(path("roles/", roles_view, name="people_roles"))
        return [*own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        person = self.get_object(request, object_id)
        if person is not None:
            visits = Visit.objects.for_user(person)
            kwargs["extra_context"] = {
                **(kwargs.get("extra_context") or {}),
                "person": person,
                "may_touch": self.has_change_permission(request, person),
                "visits": [(visit, sessions.device_name(visit.device)) for visit in visits],
                "has_factor": factors.has_second_factor(person),
                "state": people_list.STATE_LABELS[people_list.state_of(person)],
                "quotas": quota_view.rows(person),
                "quota_form": quota_view.QuotaForm(person),
                "may_limit": request.user.has_perm("agents.change_quota"),
                "opened": access_view.for_user(person),
                "unpriced": quota_view.month_totals(person)["unpriced"],
            }
        return super().change_view(request, object_id, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        catch_up.catch_up_for_page()
        may = request.user.has_perms(["auth.add_user", "people.add_invitation"])
        waiting = Invitation.objects.open().count()
        context = {"title": _("Users"), "may_invite": may, "waiting": waiting}
        return super().changelist_view(request, context | (extra_context or {}))

    def save_quotas(self, request: HttpRequest, pk: int) -> HttpResponse:
        quota_view.save_form(request, self._get_person(request, pk))
        return redirect(f"{reverse('admin:auth_user_change', args=[pk])}#quotas")

    def reactivate(self, request: HttpRequest) -> HttpResponse:
        """Undo a deactivation."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        pks = [n for n in request.POST.get("people", "").split(",") if n.isdecimal()]
        editor = signed_in_user(request)
        for person in User.objects.filter(pk__in=pks[:1000], is_active=False):
            if can_edit_user(editor, person):
                person.is_active = True
                person.save(update_fields=["is_active"])
                self.on_active_changed(request, person)
        messages.success(request, _("The users are active again."))
        return redirect("admin:auth_user_changelist")

    def link(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Display a link to choose a password, once; services and visitors have none."""
        person = self._get_person(request, pk)
        if is_service_account(person) or is_visitor(person.pk):
            raise Http404
        return self._render_password_link(request, person)

    def _render_password_link(self, request: HttpRequest, person: User) -> HttpResponse:
        uid = urlsafe_base64_encode(force_bytes(person.pk))
        token = default_token_generator.make_token(person)
        url = request.build_absolute_uri(reverse("people:welcome", args=[uid, token]))
        audit.record(request.user, audit.PASSWORD_LINK, factors.audit_subject(person))
        title = _("Password link for %(name)s") % {"name": person.get_username()}
        context = {"title": title, "person": person, "link": url}
        context |= self.admin_site.each_context(request)
        response = render(request, "admin/people/link.html", context)
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


__all__ = ["PersonAdmin", "app_admin", "api_key_admin", "invitation_admin"]

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
        module = import_module("agents.accounts.openid.provider_check")
        yield from module.health_check()


health_checks.MORE_CHECKS.append(check_single_sign_on)

site: Any = admin.site
site.login = sign_in
site.password_change = password_change
site.logout = logout
