"""The table of figures: what each is called, how it is computed, written and judged.

Cards, tables, files, reports and comparisons of versions name figures by their keys; an unknown
key raises.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.metering.figures.totals import COST_COLUMNS, NANOS, Totals
from agents.models.types import LazyText
from agents.web.presentation.formats import formatting

DASH = formatting.DASH
MIN_POINTS = 0.005
MIN_CHANGE = 0.05  # as accurate as percentiles are
Value = Callable[[Totals], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """How values are written, and what the list of runs is sorted by to find large ones."""

    text: Callable[[float], str]
    sort: str = ""


def count_text(value: float) -> str:
    return str(number_format(int(value), force_grouping=True))


def seconds_text(value: float) -> str:
    return formatting.seconds(value) if value < 60 else formatting.duration(value * 1000)


COUNT = Unit(text=count_text)
TOKENS = Unit(text=count_text, sort="-tokens")
RATE = Unit(text=formatting.percent)
DOLLARS = Unit(text=formatting.cost, sort="-cost")
SECONDS = Unit(text=seconds_text, sort="-time")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerRun:
    """A figure as a mean over runs, for versions: of means, intervals can be computed.

    `total` of the runs `which` have it is divided by `count` and `scale`.
    """

    total: Any
    which: Q = Q()
    count: Any = Count("pk")
    scale: int = 1
    unit: Unit = RATE
    label: LazyText = ""
    help: LazyText = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure. `terms` filter the list of runs; `basis` is what a rate is of."""

    key: str
    label: LazyText
    value: Value
    unit: Unit = COUNT
    group: str = ""  # of the list of all figures; without one, it is only in tables
    terms: Sequence[str] = ()
    good: int = 0  # 1: more is better, -1: less is
    is_part: bool = False  # of the figure above it
    basis: Callable[[Totals], tuple[int, int]] | None = None
    has_basis: bool = False  # it is written beside the rate
    help: LazyText = ""
    icon: str = ""  # of its card
    tone: str = "ink"  # of its chart
    note: Callable[[Totals], str] | None = None  # below it on its card
    per_run: PerRun | None = None

    @property
    def is_rate(self) -> bool:
        return self.unit is RATE

    def write(self, totals: Totals) -> str:
        value = self.value(totals)
        return DASH if value is None else self.unit.text(value)

    def basis_text(self, totals: Totals) -> str:
        """Return what a rate is of: “3 of 10”."""
        count, total = self.basis(totals) if self.basis else (0, 0)
        params = {"part": count_text(count), "whole": count_text(total)}
        return _("%(part)s of %(whole)s") % params if total else ""


def _count(key: str, label: LazyText, group: str, *terms: str, **fields: Any) -> Metric:
    """Return the sum of a measure."""
    return Metric(
        key=key,
        label=label,
        group=group,
        value=lambda totals: totals[key],
        terms=terms,
        **fields,
    )


def _cost(key: str, label: LazyText, **fields: Any) -> Metric:
    """Return the sum of a measure in billionths of a dollar."""
    return Metric(
        key=key,
        label=label,
        group="cost",
        value=lambda totals: totals[key] / NANOS,
        unit=DOLLARS,
        **fields,
    )


def _rate(
    key: str,
    label: LazyText,
    group: str,
    basis: Callable[[Totals], tuple[int, int]],
    *terms: str,
    **fields: Any,
) -> Metric:
    """Return the first number of the basis divided by the second."""

    def value(totals: Totals) -> float | None:
        count, total = basis(totals)
        return count / total if total else None

    return Metric(
        key=key,
        label=label,
        group=group,
        value=value,
        unit=RATE,
        terms=terms,
        basis=basis,
        **fields,
    )


def _percentile(
    key: str, label: LazyText, share: float, histogram: str, **fields: Any
) -> Metric:
    return Metric(
        key=key,
        label=label,
        value=lambda totals: totals.percentile(histogram, share),
        unit=SECONDS,
        good=-1,
        **fields,
    )


def _cost_note(totals: Totals) -> str:
    if unpriced := totals["unpriced"]:
        text = ngettext(
            "%(count)d run with an unknown price",
            "%(count)d runs with an unknown price",
            unpriced,
        )
        return text % {"count": unpriced}
    if not totals.cost_per_run:
        return ""
    return _("%(cost)s per run") % {"cost": formatting.cost(totals.cost_per_run)}


def _tool_note(totals: Totals) -> str:
    if not totals["tool_calls"]:
        return ""
    return _("%(rate)s failed") % {"rate": METRICS["tool_errors"].write(totals)}


def _rating_note(totals: Totals) -> str:
    text = ngettext(
        "%(count)d rating, %(coverage)s of runs",
        "%(count)d ratings, %(coverage)s of runs",
        totals.ratings,
    )
    share = METRICS["coverage"].write(totals)
    return text % {"count": totals.ratings, "coverage": share}


GROUPS: dict[str, LazyText] = {
    "outcomes": gettext_lazy("Outcomes"),
    "reliability": gettext_lazy("Reliability"),
    "speed": gettext_lazy("Speed"),
    "quality": gettext_lazy("Quality and safety"),
    "cost": gettext_lazy("Cost"),
    "tokens": gettext_lazy("Tokens"),
}
TABLE = (
    _count("runs", gettext_lazy("Runs"), "outcomes", icon="trace"),
    _count(
        "completed", gettext_lazy("Completed"), "outcomes", "outcome:completed", is_part=True
    ),
    _count(
        "failed", gettext_lazy("Failed"), "outcomes", "outcome:failed", good=-1, is_part=True
    ),
    _count(
        "blocked",
        gettext_lazy("Blocked by a guardrail"),
        "outcomes",
        "outcome:blocked",
        is_part=True,
    ),
    _count(
        "cancelled",
        gettext_lazy("Stopped by a user"),
        "outcomes",
        "outcome:cancelled",
        is_part=True,
    ),
    _count(
        "over_budget",
        gettext_lazy("Time, token or cost limit reached"),
        "outcomes",
        "outcome:budget",
        is_part=True,
    ),
    _count(
        "limited",
        gettext_lazy("Stopped by another limit"),
        "outcomes",
        "outcome:limit",
        is_part=True,
    ),
    _count(
        "interrupted",
        gettext_lazy("Interrupted"),
        "outcomes",
        "outcome:interrupted",
        good=-1,
        is_part=True,
    ),
    _rate(
        "completion",
        gettext_lazy("Completion rate"),
        "outcomes",
        lambda t: (t["completed"], t.decided),
        "outcome:completed",
        good=1,
        help=gettext_lazy("Excludes runs stopped by users or by a time, token or cost limit."),
        icon="done",
        tone="green",
        per_run=PerRun(total=F("completed"), which=Q(cancelled=0, over_budget=0)),
    ),
    _rate(
        "errors",
        gettext_lazy("Error rate"),
        "reliability",
        lambda t: (t["failed"], t["runs"]),
        "outcome:failed",
        good=-1,
        icon="failed",
        tone="red",
        per_run=PerRun(total=F("failed")),
    ),
    _rate(
        "timeouts",
        gettext_lazy("Runs with a timeout"),
        "reliability",
        lambda t: (t["timed_out"], t["runs"]),
        "has:timeout",
        good=-1,
    ),
    _count(
        "tool_calls",
        gettext_lazy("Tool calls"),
        "reliability",
        "kind:tool",
        icon="tool",
        note=_tool_note,
    ),
    _rate(
        "tool_errors",
        gettext_lazy("Failed tool calls"),
        "reliability",
        lambda t: (t["tool_errors"], t["tool_calls"]),
        "has:toolerror",
        good=-1,
    ),
    _count(
        "tool_timeouts",
        gettext_lazy("Tool timeouts"),
        "reliability",
        "has:timeout",
        good=-1,
    ),
    _count("model_calls", gettext_lazy("Model calls"), "reliability"),
    _count("retries", gettext_lazy("Retries"), "reliability", "has:retry", good=-1),
    _count("fallbacks", gettext_lazy("Fallback models used"), "reliability", "has:fallback"),
    _rate(
        "replans",
        gettext_lazy("Changed plans"),
        "reliability",
        lambda t: (t["replanned"], t["planned"]),
        "has:replan",
        help=gettext_lazy("Of runs with a plan."),
    ),
    _percentile(
        "active_p50",
        gettext_lazy("p50 active time"),
        0.5,
        "active",
        group="speed",
        per_run=PerRun(
            label=gettext_lazy("Mean active time"),
            total=F("active_ms"),
            which=Q(active_count__gt=0),
            scale=1000,
            unit=SECONDS,
        ),
    ),
    _percentile(
        "active_p95",
        gettext_lazy("p95 active time"),
        0.95,
        "active",
        group="speed",
        icon="timer",
        tone="blue",
        note=lambda t: f"p50 {METRICS['active_p50'].write(t)}",
    ),
    _percentile(
        "first_p50",
        gettext_lazy("p50 time to first token"),
        0.5,
        "first",
        group="speed",
        icon="answer",
        tone="blue",
        note=lambda t: f"p95 {METRICS['first_p95'].write(t)}",
        per_run=PerRun(
            label=gettext_lazy("Mean time to first token"),
            total=F("first_ms"),
            which=Q(first_count__gt=0),
            scale=1000,
            unit=SECONDS,
        ),
    ),
    _percentile(
        "first_p95", gettext_lazy("p95 time to first token"), 0.95, "first", group="speed"
    ),
    _percentile("calls_p50", gettext_lazy("p50 per call"), 0.5, "calls"),
    _percentile("calls_p95", gettext_lazy("p95 per call"), 0.95, "calls"),
    _rate(
        "satisfaction",
        gettext_lazy("Satisfaction"),
        "quality",
        lambda t: (t["ratings_up"], t.ratings),
        "has:rating",
        good=1,
        has_basis=True,
        help=gettext_lazy(
            "Thumbs up among ratings. Few users rate, and they aren't a random sample."
        ),
        icon="good",
        tone="green",
        note=_rating_note,
        per_run=PerRun(
            total=F("ratings_up"),
            which=Q(rated__gt=0),
            count=Sum(F("ratings_up") + F("ratings_down")),
            help=gettext_lazy("Thumbs up among ratings; coverage is the share of rated runs."),
        ),
    ),
    _rate(
        "coverage",
        gettext_lazy("Rated runs"),
        "quality",
        lambda t: (t["rated"], t["runs"]),
        "has:rating",
        has_basis=True,
    ),
    _count("ratings_down", gettext_lazy("Thumbs down"), "quality", "rating:down", good=-1),
    _count(
        "corrected", gettext_lazy("Corrected answers"), "quality", "has:correction", good=-1
    ),
    _count(
        "regenerated",
        gettext_lazy("Regenerated answers"),
        "quality",
        "has:regeneration",
        good=-1,
        per_run=PerRun(total=F("regenerated")),
    ),
    _count(
        "guarded",
        gettext_lazy("Runs with a guardrail hit"),
        "quality",
        "guardrail:block,mask,warn",
    ),
    _count(
        "guardrail_hits",
        gettext_lazy("Guardrail hits"),
        "quality",
        "guardrail:block,mask,warn",
    ),
    Metric(
        key="cost",
        label=gettext_lazy("Cost"),
        group="cost",
        value=lambda t: t.cost,
        unit=DOLLARS,
        icon="cost",
        tone="violet",
        note=_cost_note,
    ),
    _cost("answer_cost", gettext_lazy("Answers"), is_part=True),
    _cost("replan_cost", gettext_lazy("Changed plans"), is_part=True),
    _cost("retry_cost", gettext_lazy("Invalid responses"), is_part=True),
    _cost("check_cost", gettext_lazy("Model checks and evaluations"), is_part=True),
    _cost("title_cost", gettext_lazy("Chat titles"), is_part=True),
    Metric(
        key="cost_per_run",
        label=gettext_lazy("Cost per run"),
        group="cost",
        value=lambda t: t.cost_per_run,
        unit=DOLLARS,
        good=-1,
        help=gettext_lazy("Excludes runs that called a model with an unknown price."),
        per_run=PerRun(
            total=COST_COLUMNS,
            which=Q(unpriced=0),
            scale=NANOS,
            unit=DOLLARS,
        ),
    ),
    _count(
        "unpriced",
        gettext_lazy("Runs with an unknown price"),
        "cost",
        "has:unpriced",
        good=-1,
        help=gettext_lazy("Their calls aren't part of the cost."),
    ),
    _cost("saved_cost", gettext_lazy("Saved by caches")),
    _count("cached", gettext_lazy("Answers from a cache"), "cost", "has:cached"),
    Metric(
        key="tokens",
        label=gettext_lazy("Tokens"),
        group="tokens",
        value=lambda t: t.tokens,
        unit=TOKENS,
    ),
    _count("input_tokens", gettext_lazy("Input"), "tokens", unit=TOKENS),
    _count(
        "cache_read_tokens",
        gettext_lazy("Read from the provider's cache"),
        "tokens",
        unit=TOKENS,
        is_part=True,
    ),
    _count(
        "cache_write_tokens",
        gettext_lazy("Written to the provider's cache"),
        "tokens",
        unit=TOKENS,
        is_part=True,
    ),
    _count("output_tokens", gettext_lazy("Output"), "tokens", unit=TOKENS),
    _count("reasoning_tokens", gettext_lazy("Reasoning"), "tokens", unit=TOKENS, is_part=True),
)
METRICS: dict[str, Metric] = {metric.key: metric for metric in TABLE}


def pick(*keys: str) -> tuple[Metric, ...]:
    """Return these figures; raise KeyError for an unknown one."""
    return tuple(METRICS[key] for key in keys)


def in_group(name: str) -> list[Metric]:
    return [metric for metric in TABLE if metric.group == name]


def change_text(metric: Metric, current: Totals, previous: Totals) -> str:
    """Return the change: points of a rate, else percent; nothing without a basis."""
    new = metric.value(current)
    old = metric.value(previous)
    if new is None or old is None:
        return ""
    if metric.is_rate:
        points = round((new - old) * 100, 1)
        return _("%(points)s pts") % {"points": signed(points)} if points else ""
    if not old or not new:
        return ""
    percent = round((new - old) / old * 100)
    return f"{signed(percent)}%" if percent else ""


def tone(metric: Metric, current: Totals, previous: Totals) -> str:
    """Return whether a change is better or worse, if it is either.

    A count grows with the number of runs, which is neither; and small changes are noise.
    """
    new = metric.value(current)
    old = metric.value(previous)
    if not metric.good or new is None or old is None or metric.unit in (COUNT, TOKENS):
        return ""
    if abs(new - old) < (MIN_POINTS if metric.is_rate else MIN_CHANGE * old):
        return ""
    return "better" if (new > old) == (metric.good > 0) else "worse"


def signed(number: float) -> str:
    return f"{'+' if number > 0 else '−'}{number_format(abs(number), force_grouping=True)}"
