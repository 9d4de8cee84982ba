"""Quotas on pages: what is in force and used, and the form that changes them."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from django import forms
from django.contrib.auth.models import Group, User
from django.db.models import Count, F, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents import budgets
from agents.access import audit
from agents.budgets import BudgetState, pricing, refusals
from agents.budgets.limits import ALL, DEFAULTS, Key, Limit
from agents.budgets.windows import window_start
from agents.installation.setting import MICROS
from agents.models import Quota, Run
from agents.web.presentation.dates import datetime_text

from . import factors

Measure, Window = Quota.Measure, Quota.Window
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
    today, month = _used_since(user, Window.DAY), _used_since(user, Window.MONTH)
    return [
        UsageRow(
            label=str(measure.label),
            today=refusals.short_amount(measure, today[measure]),
            month=refusals.short_amount(measure, month[measure]),
        )
        for measure in (Measure.RUNS, Measure.TOKENS, Measure.COST)
    ]


def _used_since(user: User, window: Quota.Window) -> dict[Quota.Measure, int]:
    runs = Run.objects.executed().filter(user=user, started_at__gte=window_start(window))
    used = runs.aggregate(
        runs=Count("pk"),
        tokens=Sum(F("prompt_tokens") + F("completion_tokens"), default=0),
        cost=Sum("cost", default=0.0),
    )
    return {
        Measure.RUNS: used["runs"],
        Measure.TOKENS: used["tokens"],
        Measure.COST: round(used["cost"] * MICROS),
    }


def unpriced_runs(user: User) -> int:
    """Return how many runs of this month have no known cost, without those of free models."""
    runs = Run.objects.executed().filter(user=user, started_at__gte=window_start(Window.MONTH))
    runs = runs.filter(cost=None, prompt_tokens__gt=0)
    models = set(runs.order_by().values_list("model", flat=True).distinct())
    return runs.exclude(model__in=pricing.free_models(models)).count() if models else 0


def _row(state: BudgetState) -> QuotaRow:
    limit = state.limit
    measure, amount = limit.measure, limit.amount
    left = "" if amount is None else budgets.format_amount(measure, state.left or 0)
    return QuotaRow(
        label=key_label(limit.key),
        used=budgets.format_amount(measure, state.spent),
        held=budgets.format_amount(measure, state.held) if state.held else "",
        limit=_("No limit") if amount is None else budgets.format_amount(measure, amount),
        left=left,
        percent=0 if not amount else min(100, round(100 * state.share)),
        source=_source_label(limit),
        resets=datetime_text(state.resets_at),
        is_limited=amount is not None,
    )


def _source_label(limit: Limit) -> str:
    if limit.source == "user":
        return _("Own quota")
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
            self._add_fields(key)

    def _add_fields(self, key: Key) -> None:
        name, label = SEPARATOR.join(key), key_label(key)
        is_set, value = key in self.saved, self.saved.get(key)
        mode = "inherit" if not is_set else "none" if value is None else "limit"
        self.fields[f"{name}{SEPARATOR}mode"] = forms.ChoiceField(
            label=label, choices=self.CHOICES, initial=mode
        )
        is_money = key[0] == Measure.COST
        initial: Any = value
        if value is not None and is_money:
            initial = (Decimal(value) / MICROS).quantize(Decimal("0.01"))
        self.fields[name] = forms.DecimalField(
            label=label,
            required=False,
            min_value=0,
            max_digits=14,  # in millionths of a dollar it still fits into the column
            decimal_places=2 if is_money else 0,
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
        wanted = self._wanted()
        if wanted == self.saved:
            return False
        owner: dict[str, Any] = {
            "group" if isinstance(self.owner, Group) else "user": self.owner
        }
        for row in Quota.objects.of(self.owner):
            key = (row.measure, row.window)
            if key in self.saved and key not in wanted:
                row.delete()
        for (measure, window), limit in wanted.items():
            about: dict[str, Any] = {**owner, "measure": measure, "window": window}
            Quota.objects.update_or_create({"limit": limit}, **about)
        changed = {k for k in wanted.keys() | self.saved.keys() if self._differs(k, wanted)}
        facts = {
            "_".join(k): [self._shown(self.saved, k), self._shown(wanted, k)] for k in changed
        }
        group = self.owner if isinstance(self.owner, Group) else None
        subject = group or factors.audit_subject(cast(User, self.owner))
        audit.record(actor, audit.QUOTA_CHANGED, subject, changes=facts)
        return True

    def _wanted(self) -> dict[Key, int | None]:
        limits: dict[Key, int | None] = {}
        for key in DEFAULTS:
            name = SEPARATOR.join(key)
            mode = self.cleaned_data[f"{name}{SEPARATOR}mode"]
            if mode == "none":
                limits[key] = None
            elif mode == "limit":
                scale = MICROS if key[0] == Measure.COST else 1
                limits[key] = round(self.cleaned_data[name] * scale)
        return limits

    def _differs(self, key: Key, wanted: dict[Key, int | None]) -> bool:
        return self._shown(wanted, key) != self._shown(self.saved, key)

    @staticmethod
    def _shown(values: dict[Key, int | None], key: Key) -> Any:
        return values.get(key, "inherited") if key in values else "inherited"
