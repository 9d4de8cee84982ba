"""What the guardrails page displays: rules in order, sets, privacy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from agents.models import Agent, GuardrailPattern, GuardrailUsage

from . import hits, pattern_sets
from .privacy import privacy_modes
from .trends import Trend, trends_of

TONES = {"block": "red", "mask": "amber", "warn": "blue", "allow": "green"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What the user can do on the page."""

    change: bool
    add: bool
    review: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    rule: GuardrailPattern
    trend: Trend
    judged: int
    right: int
    agents: Sequence[str] = ()
    usage: GuardrailUsage | None = None

    @property
    def tone(self) -> str:
        return TONES[self.rule.action] if not self.rule.is_observed else ""

    @property
    def wrong(self) -> int:
        return self.judged - self.right

    @property
    def wrong_percent(self) -> int | None:
        return round(100 * self.wrong / self.judged) if self.judged else None

    @property
    def has_problem(self) -> bool:
        """Whether a model check failed today."""
        return self.usage is not None and self.usage.failures > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetView:
    """A ready-made set, and how much of it is in use."""

    key: str
    ready: pattern_sets.PatternSet
    present: int
    enabled: int

    @property
    def total(self) -> int:
        return len(self.ready.patterns)

    @property
    def is_on(self) -> bool:
        return self.enabled >= self.total


def build_rows(rules: QuerySet[GuardrailPattern]) -> list[RuleRow]:
    """Return the rules with their figures."""
    rows = list(hits.with_counts(rules).prefetch_related("agents"))
    trends = trends_of(row.pk for row in rows)
    today = timezone.localdate(timezone=timezone.get_default_timezone())
    used = {usage.pattern_id: usage for usage in GuardrailUsage.objects.filter(day=today)}
    return [
        RuleRow(
            rule=row,
            trend=trends[row.pk],
            judged=row.judged,
            right=row.right,
            agents=[agent.name for agent in row.agents.all()],
            usage=used.get(row.pk),
        )
        for row in rows
    ]


def page_context(changelist: Any, rights: Rights) -> dict[str, Any]:
    """Return what the page displays besides Django's list."""
    return {
        "rules": build_rows(changelist.queryset),
        "may": rights,
        "is_sorted": not changelist.params,
        "sets": set_views(),
        "modes": privacy_modes(),
        "agents": Agent.objects.filter(enabled=True).only("name"),
    }


def set_views() -> list[SetView]:
    views = []
    for key, pattern_set in pattern_sets.SETS.items():
        states = list(pattern_sets.rows_of(key).values_list("pattern", "enabled"))
        present = {pattern for pattern, _is_on in states}
        enabled = {pattern for pattern, is_on in states if is_on}
        views.append(
            SetView(key=key, ready=pattern_set, present=len(present), enabled=len(enabled))
        )
    return views
