"""Filters and actions of the list of users."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.auth.models import Group, User
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.metering.figures.models import RunSummary
from agents.metering.figures.summaries import day_of
from agents.metering.figures.totals import COST_COLUMNS, TOKEN_COLUMNS
from agents.models import ApiKey, EmbedVisitor
from agents.models.catalog.rights import Role, group_label

from ..authentication import factors, sessions
from ..models import Authenticator, Identity, Passkey, Visit
from . import roles
from .forms import can_edit_user, grantable_groups
from .group_switches import opens_console

UNUSED = Q(last_login=None, password__startswith="!", has_identity=False)
IS_PERSON = Q(is_service=False, is_visitor=False)
STATES = {
    "active": IS_PERSON & Q(is_active=True) & ~UNUSED,
    "invited": IS_PERSON & Q(is_active=True) & UNUSED,
    "service": Q(is_service=True, is_active=True),
    "visitor": Q(is_visitor=True, is_active=True),
    "deactivated": Q(is_active=False),
}
STATE_LABELS = {
    "active": (_("active"), "green"),
    "invited": (_("invited"), "blue"),
    "service": (pgettext_lazy("user", "service"), "blue"),
    "visitor": (pgettext_lazy("user", "visitor"), "blue"),
    "deactivated": (_("disabled"), ""),
}


def annotate(people: QuerySet[Any]) -> QuerySet[Any]:
    """Add state, second factors and this month's usage."""
    of_user = {"user": OuterRef("pk")}
    month = day_of(timezone.now()).replace(day=1)
    runs = RunSummary.objects.filter(**of_user, is_hidden=False, day__gte=month)
    sums = runs.order_by().values("user")
    tokens = sums.annotate(n=Sum(TOKEN_COLUMNS)).values("n")
    cost = sums.annotate(n=Sum(COST_COLUMNS)).values("n")
    return people.annotate(
        has_identity=Exists(Identity.objects.filter(**of_user)),
        is_service=Exists(ApiKey.objects.filter(**of_user, is_service=True)),
        is_visitor=Exists(EmbedVisitor.objects.filter(**of_user)),
        has_mfa=Exists(Authenticator.objects.filter(**of_user))
        | Exists(Passkey.objects.filter(**of_user)),
        month_tokens=Coalesce(Subquery(tokens), 0),
        month_cost=Coalesce(Subquery(cost), 0),  # in billionths of a dollar
    )


def state_of(person: Any) -> str:
    if not person.is_active:
        return "deactivated"
    if person.is_service:
        return "service"
    if person.is_visitor:
        return "visitor"
    is_unused = person.last_login is None and not person.has_usable_password()
    return "invited" if is_unused and not person.has_identity else "active"


class StateFilter(admin.SimpleListFilter):
    """Without a choice, it leaves out visitors: a site has more of them than users."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(key, label) for key, (label, _tone) in STATE_LABELS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(STATES.get(self.value() or "", Q(is_visitor=False)))


class RoleFilter(admin.SimpleListFilter):
    title = _("role")
    parameter_name = "role"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return Role.choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        admins = roles.administrators().values("pk")
        reviewers = User.objects.filter(groups__name=Role.REVIEWER).values("pk")
        if self.value() == Role.ADMINISTRATOR:
            return queryset.filter(pk__in=admins)
        if self.value() == Role.REVIEWER:
            return queryset.filter(pk__in=reviewers).exclude(pk__in=admins)
        if self.value() == Role.PERSON:
            return queryset.exclude(pk__in=admins).exclude(pk__in=reviewers)
        return queryset


class GroupFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        return [(group.pk, group_label(group)) for group in Group.objects.order_by("name")]


class PeopleActionForm(ActionForm):
    """The group of “Add to group”."""

    group = forms.ModelChoiceField(
        label=_("Group"),
        queryset=Group.objects.exclude(name__in=Role.values).order_by("name"),
        required=False,
        empty_label=_("Group…"),
    )


@admin.action(description=_("Revoke all sessions"), permissions=["change"])
def sign_out_everywhere(console: Any, request: HttpRequest, people: QuerySet[Any]) -> None:
    editable = [person for person in people if can_edit_user(signed_in_user(request), person)]
    count = sessions.end(Visit.objects.filter(user__in=editable))
    for person in editable:
        audit.record(request.user, audit.SESSION_ENDED, factors.audit_subject(person))
    messages.success(
        request,
        ngettext("%(count)d session revoked.", "%(count)d sessions revoked.", count)
        % {"count": count},
    )


@admin.action(description=_("Disable"), permissions=["change"])
def deactivate(console: Any, request: HttpRequest, people: QuerySet[Any]) -> None:
    """Deactivate users; one's own account and the last administrator stay."""
    editor = signed_in_user(request)
    deactivated = []
    for person in people.filter(is_active=True):
        if person == editor or not can_edit_user(editor, person):
            continue
        if roles.is_last_administrator(person):
            continue
        person.is_active = False
        person.save(update_fields=["is_active"])
        console.on_active_changed(request, person)
        deactivated.append(person.pk)
    skipped = people.count() - len(deactivated)
    sentence = ngettext(
        "%(count)d user disabled.", "%(count)d users disabled.", len(deactivated)
    )
    _add_undo(request, sentence % {"count": len(deactivated)}, deactivated)
    if skipped:
        skipped_sentence = ngettext(
            "%(count)d user was skipped: it's you, the last administrator, already "
            "disabled, or has more permissions than you.",
            "%(count)d users were skipped: you, the last administrator, already disabled, "
            "or with more permissions than you.",
            skipped,
        )
        messages.warning(request, skipped_sentence % {"count": skipped})


def _add_undo(request: HttpRequest, sentence: str, people: list[int]) -> None:
    if not people:
        return
    form_html = format_html(
        '{} <form method="post" action="{}"><input type="hidden" name="csrfmiddlewaretoken" '
        'value="{}"><input type="hidden" name="people" value="{}">'
        '<button class="undo">{}</button></form>',
        sentence,
        reverse("admin:people_reactivate"),
        get_token(request),
        ",".join(map(str, people)),
        _now("Undo"),
    )
    messages.success(request, form_html)


@admin.action(description=_("Add to group"), permissions=["change"])
def add_to_group(console: Any, request: HttpRequest, people: QuerySet[Any]) -> None:
    editor = signed_in_user(request)
    chosen = request.POST.get("group", "")
    groups = grantable_groups(editor).filter(pk=int(chosen)) if chosen.isdecimal() else None
    group = groups.first() if groups is not None else None
    if group is None:
        messages.error(request, _("Choose a group beside the action."))
        return
    editable = [person for person in people if can_edit_user(editor, person)]
    is_opening = opens_console(group)
    for person in editable:
        person.groups.add(group)
        if is_opening:
            roles.update_console_access(person)
        console.record_permissions(request, person)
    count = len(editable)
    sentence = ngettext(
        "%(count)d user added to %(group)s.", "%(count)d users added to %(group)s.", count
    )
    messages.success(request, sentence % {"count": count, "group": group.name})
