"""Quotas on pages: what is in force and used, and the form that changes them."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.metering import budgets
from agents.metering.budgets import BudgetState
from agents.metering.budgets.limits import ALL, DEFAULTS, Key, Limit
from agents.metering.budgets.measures import MEASURES
from agents.metering.figures import catch_up
from agents.metering.figures.query import FiguresQuery
from agents.metering.figures.selection import Selection, Viewer
from agents.metering.figures.summaries import day_of
from agents.metering.figures.totals import Totals
from agents.metering.figures.windows import last_days
from agents.models import Quota
from agents.web.figures import metrics
from agents.web.presentation.formats.dates import datetime_text

from ..authentication import factors

Measure = Quota.Measure
Window = Quota.Window
SEPARATOR = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRow:
    """A limit in force on a page."""

    label: str
    used: str
    held: str
    limit: str
    left: str
    percent: int
    source: str
    resets: str
    is_limited: bool


def rows(user: User) -> list[QuotaRow]:
    """Return all limits of a user, with what they have used."""
    groups = list(user.groups.values_list("pk", flat=True))
    limits = budgets.resolve(user.pk, groups)
    shown_limits = [
        limit for limit in limits if limit.amount is not None or limit.key in DEFAULTS
    ]
    return [_row(state) for state in budgets.read_limits(shown_limits)]


def applying(user: User) -> list[QuotaRow]:
    """Return all limits that a user's messages and runs count against, also shared ones."""
    return [_row(state) for state in budgets.read(user.pk)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What a user's own runs used of one measure."""

    label: str
    today: str
    month: str


def usage(user: User) -> list[UsageRow]:
    """Return runs, tokens and cost of today and of this month."""
    month = month_totals(user)
    today = _totals(user, 1)
    return [
        UsageRow(label=str(metric.label), today=metric.write(today), month=metric.write(month))
        for metric in metrics.pick("runs", "tokens", "cost")
    ]


def month_totals(user: User) -> Totals:
    """Return the figures of this month."""
    catch_up.catch_up_for_page()
    return _totals(user, day_of(timezone.now()).day)


def _totals(user: User, days: int) -> Totals:
    window = last_days(days, timezone.now())
    return FiguresQuery(Viewer(None), window, Selection(person=user.pk)).total()


def _row(state: BudgetState) -> QuotaRow:
    limit = state.limit
    measure = limit.measure
    amount = limit.amount
    return QuotaRow(
        label=key_label(limit.key),
        used=budgets.format_amount(measure, state.spent),
        held=budgets.format_amount(measure, state.held) if state.held else "",
        limit=_("No limit") if amount is None else budgets.format_amount(measure, amount),
        left="" if amount is None else budgets.format_amount(measure, state.left or 0),
        percent=0 if not amount else min(100, round(100 * state.share)),
        source=_source_label(limit),
        resets=datetime_text(state.resets_at),
        is_limited=amount is not None,
    )


def _source_label(limit: Limit) -> str:
    if limit.source == "user":
        return _("Own limit")
    if limit.kind == "group":
        return _("%(name)s together") % {"name": limit.name}
    if limit.kind == ALL:
        return _("All users together")
    if limit.source == "group":
        return _("Group %(name)s") % {"name": limit.name}
    return _("Default")


def key_label(key: Key) -> str:
    if key in DEFAULTS:
        return str(DEFAULTS[key].label)
    return f"{Measure(key[0]).label} {Window(key[1]).label}"


def save_form(request: HttpRequest, owner: User | Group) -> None:
    """Save the quotas that a page's form sent, and say so."""
    if not request.user.has_perm("agents.change_quota"):
        raise PermissionDenied
    form = QuotaForm(owner, request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(form.errors.as_text().split()))
    elif form.save(signed_in_user(request)):
        messages.success(request, _("Usage limits saved."))


class QuotaForm(forms.Form):
    """The quotas of a user or a group: a number, no limit, or nothing of their own."""

    CHOICES = [
        ("inherit", gettext_lazy("Inherited")),
        ("none", gettext_lazy("No limit")),
        ("limit", gettext_lazy("Limit to")),
    ]

    def __init__(self, owner: User | Group, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner
        # Other limits are on the page of budgets.
        limits = {(q.measure, q.window): q.limit for q in Quota.objects.of(owner)}
        self.saved = {key: limit for key, limit in limits.items() if key in DEFAULTS}
        for key in DEFAULTS:
            name = SEPARATOR.join(key)
            label = key_label(key)
            value = self.saved.get(key)
            mode = "inherit" if key not in self.saved else "none" if value is None else "limit"
            self.fields[f"{name}{SEPARATOR}mode"] = forms.ChoiceField(
                label=label, choices=self.CHOICES, initial=mode
            )
            typed = MEASURES[key[0]].typed
            initial: Any = value
            if value is not None and typed > 1:
                initial = (Decimal(value) / typed).quantize(Decimal("0.01"))
            self.fields[name] = forms.DecimalField(
                label=label,
                required=False,
                min_value=0,
                max_digits=14,  # in millionths of a dollar it still fits into the column
                decimal_places=2 if typed > 1 else 0,
                initial=initial,
            )

    def field_rows(self) -> list[tuple[str, forms.BoundField, forms.BoundField]]:
        names = [SEPARATOR.join(key) for key in DEFAULTS]
        return [
            (key_label(key), self[f"{name}{SEPARATOR}mode"], self[name])
            for key, name in zip(DEFAULTS, names, strict=True)
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for key in DEFAULTS:
            name = SEPARATOR.join(key)
            wants = cleaned.get(f"{name}{SEPARATOR}mode") == "limit"
            if wants and name in cleaned and cleaned[name] is None:
                self.add_error(name, _("Enter a number."))
        return cleaned

    def save(self, actor: User) -> bool:
        """Save the rows and record what changed; return whether anything did."""
        chosen: dict[Key, int | None] = {}
        for key in DEFAULTS:
            name = SEPARATOR.join(key)
            mode = self.cleaned_data[f"{name}{SEPARATOR}mode"]
            if mode == "none":
                chosen[key] = None
            elif mode == "limit":
                chosen[key] = round(self.cleaned_data[name] * MEASURES[key[0]].typed)
        if chosen == self.saved:
            return False
        owner: dict[str, Any] = {
            "group" if isinstance(self.owner, Group) else "user": self.owner
        }
        for row in Quota.objects.of(self.owner):
            key = (row.measure, row.window)
            if key in self.saved and key not in chosen:
                row.delete()
        for (measure, window), limit in chosen.items():
            Quota.objects.update_or_create(
                {"limit": limit}, **owner, measure=measure, window=window
            )
        changes = {}
        for key in chosen.keys() | self.saved.keys():
            values = [self.saved.get(key, "inherited"), chosen.get(key, "inherited")]
            if values[0] != values[1]:
                changes["_".join(key)] = values
        group = self.owner if isinstance(self.owner, Group) else None
        audited = group or factors.audit_subject(cast(User, self.owner))
        audit.record(actor, audit.QUOTA_CHANGED, audited, changes=changes)
        return True
