"""The figures of the dashboard: what each is called, how it is written, the runs behind it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.console import figures as texts
from agents.models.types import LazyText
from agents.web.presentation import formatting

from .totals import NANOS, Totals

DASH = formatting.DASH
MIN_POINTS = 0.005
MIN_CHANGE = 0.05  # as accurate as percentiles are
Value = Callable[[Totals], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure. `terms` filter the list of runs; `basis` is what a rate is of."""

    key: str
    label: LazyText
    value: Value
    text: Callable[[float], str]
    terms: Sequence[str] = ()
    sort: str = ""
    good: int = 0  # 1: more is better, -1: less is
    is_rate: bool = False
    is_part: bool = False  # of the figure above it
    basis: Callable[[Totals], tuple[int, int]] | None = None
    help: LazyText = ""
    has_link: bool = True

    def write(self, totals: Totals) -> str:
        value = self.value(totals)
        return DASH if value is None else self.text(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricGroup:
    key: str
    label: LazyText
    metrics: Sequence[Metric]


def count_text(value: float) -> str:
    return str(number_format(int(value), force_grouping=True))


def seconds_text(value: float) -> str:
    return texts.seconds(value) if value < 60 else formatting.duration(value * 1000)


def _measure(name: str) -> Value:
    return lambda totals: totals[name]


def _count(key: str, label: LazyText, *terms: str, **more: Any) -> Metric:
    return Metric(
        key=key, label=label, value=_measure(key), text=count_text, terms=terms, **more
    )


def _cost(key: str, label: LazyText, value: Value | None = None, **more: Any) -> Metric:
    own = value or (lambda totals: totals[key] / NANOS)
    return Metric(key=key, label=label, value=own, text=formatting.cost, sort="-cost", **more)


def _rate(key: str, label: LazyText, value: Value, *terms: str, **more: Any) -> Metric:
    return Metric(
        key=key,
        label=label,
        value=value,
        text=texts.percent,
        terms=terms,
        is_rate=True,
        **more,
    )


def _seconds(key: str, label: LazyText, value: Value, **more: Any) -> Metric:
    return Metric(
        key=key, label=label, value=value, text=seconds_text, sort="-time", good=-1, **more
    )


RUNS = _count("runs", gettext_lazy("Runs"))
COMPLETION = _rate(
    "completion",
    gettext_lazy("Completion rate"),
    lambda t: t.completion_rate,
    "outcome:completed",
    good=1,
    basis=lambda t: (t["completed"], t.decided),
    help=gettext_lazy("Of runs that users didn't stop and that weren't out of budget."),
)
ERRORS = _rate(
    "errors",
    gettext_lazy("Error rate"),
    lambda t: t.error_rate,
    "outcome:failed",
    good=-1,
    basis=lambda t: (t["failed"], t["runs"]),
)
COST = _cost("cost", gettext_lazy("Cost"), lambda t: t.cost)
COST_PER_RUN = _cost(
    "cost_per_run",
    gettext_lazy("Cost per run"),
    lambda t: t.cost_per_run,
    help=gettext_lazy("Without runs that called a model of unknown price."),
)
TOKENS = Metric(
    key="tokens",
    label=gettext_lazy("Tokens"),
    value=lambda t: t.tokens,
    text=count_text,
    sort="-tokens",
)
ACTIVE_P50 = _seconds(
    "active_p50", gettext_lazy("p50 active time"), lambda t: t.active_percentile(0.5)
)
ACTIVE_P95 = _seconds(
    "active_p95", gettext_lazy("p95 active time"), lambda t: t.active_percentile(0.95)
)
FIRST_P50 = _seconds(
    "first_p50", gettext_lazy("p50 to first word"), lambda t: t.first_percentile(0.5)
)
FIRST_P95 = _seconds(
    "first_p95", gettext_lazy("p95 to first word"), lambda t: t.first_percentile(0.95)
)
SATISFACTION = _rate(
    "satisfaction",
    gettext_lazy("Satisfaction"),
    lambda t: t.satisfaction,
    "has:rating",
    good=1,
    basis=lambda t: (t["ratings_up"], t.ratings),
    help=gettext_lazy("Thumbs up among ratings. Few people rate, and rarely at random."),
)
COVERAGE = _rate(
    "coverage",
    gettext_lazy("Rated runs"),
    lambda t: t.coverage,
    "has:rating",
    basis=lambda t: (t["rated"], t["runs"]),
)
TOOL_CALLS = _count("tool_calls", gettext_lazy("Tool calls"), "kind:tool")
TOOL_ERRORS = _rate(
    "tool_errors",
    gettext_lazy("Failed tool calls"),
    lambda t: t.tool_error_rate,
    "has:toolerror",
    good=-1,
    basis=lambda t: (t["tool_errors"], t["tool_calls"]),
)
GROUPS = (
    MetricGroup(
        key="outcomes",
        label=gettext_lazy("Outcomes"),
        metrics=(
            RUNS,
            _count("completed", gettext_lazy("Completed"), "outcome:completed", is_part=True),
            _count("failed", gettext_lazy("Failed"), "outcome:failed", good=-1, is_part=True),
            _count(
                "blocked",
                gettext_lazy("Blocked by a guardrail"),
                "outcome:blocked",
                is_part=True,
            ),
            _count(
                "cancelled",
                gettext_lazy("Stopped by a user"),
                "outcome:cancelled",
                is_part=True,
            ),
            _count(
                "over_budget", gettext_lazy("Out of budget"), "outcome:budget", is_part=True
            ),
            _count(
                "limited",
                gettext_lazy("Stopped by another limit"),
                "outcome:limit",
                is_part=True,
            ),
            _count(
                "interrupted",
                gettext_lazy("Interrupted"),
                "outcome:interrupted",
                good=-1,
                is_part=True,
            ),
            COMPLETION,
        ),
    ),
    MetricGroup(
        key="reliability",
        label=gettext_lazy("Reliability"),
        metrics=(
            ERRORS,
            _rate(
                "timeouts",
                gettext_lazy("Runs with a timeout"),
                lambda t: t.timeout_rate,
                "has:timeout",
                good=-1,
                basis=lambda t: (t["timed_out"], t["runs"]),
            ),
            TOOL_CALLS,
            TOOL_ERRORS,
            _count("tool_timeouts", gettext_lazy("Tool timeouts"), "has:timeout", good=-1),
            _count("model_calls", gettext_lazy("Model calls")),
            _count("retries", gettext_lazy("Retries"), "has:retry", good=-1),
            _count("fallbacks", gettext_lazy("Fallback models used"), "has:fallback"),
            _rate(
                "replans",
                gettext_lazy("Changed plans"),
                lambda t: t.replan_rate,
                "has:replan",
                basis=lambda t: (t["replanned"], t["planned"]),
                help=gettext_lazy("Of runs with a plan."),
            ),
        ),
    ),
    MetricGroup(
        key="speed",
        label=gettext_lazy("Speed"),
        metrics=(ACTIVE_P50, ACTIVE_P95, FIRST_P50, FIRST_P95),
    ),
    MetricGroup(
        key="quality",
        label=gettext_lazy("Quality and safety"),
        metrics=(
            SATISFACTION,
            COVERAGE,
            _count("ratings_down", gettext_lazy("Thumbs down"), "rating:down", good=-1),
            _count("corrected", gettext_lazy("Corrected answers"), "has:correction", good=-1),
            _count(
                "regenerated",
                gettext_lazy("Regenerated answers"),
                "has:regeneration",
                good=-1,
            ),
            _count(
                "guarded",
                gettext_lazy("Runs with a guardrail hit"),
                "guardrail:block,mask,warn",
            ),
            _count(
                "guardrail_hits", gettext_lazy("Guardrail hits"), "guardrail:block,mask,warn"
            ),
        ),
    ),
    MetricGroup(
        key="cost",
        label=gettext_lazy("Cost"),
        metrics=(
            COST,
            _cost("answer_cost", gettext_lazy("Answers"), is_part=True),
            _cost("replan_cost", gettext_lazy("Changed plans"), is_part=True),
            _cost("retry_cost", gettext_lazy("Rejected replies"), is_part=True),
            _cost("check_cost", gettext_lazy("Model checks and evaluations"), is_part=True),
            _cost("title_cost", gettext_lazy("Titles of chats"), is_part=True),
            COST_PER_RUN,
            _count(
                "unpriced",
                gettext_lazy("Runs with an unknown price"),
                "has:unpriced",
                good=-1,
                help=gettext_lazy("Their calls aren't part of the cost."),
            ),
            _cost("saved_cost", gettext_lazy("Saved by caches")),
            _count("cached", gettext_lazy("Answers from a cache"), "has:cached"),
        ),
    ),
    MetricGroup(
        key="tokens",
        label=gettext_lazy("Tokens"),
        metrics=(
            TOKENS,
            _count("input_tokens", gettext_lazy("Input"), sort="-tokens"),
            _count(
                "cache_read_tokens",
                gettext_lazy("Read from the provider's cache"),
                sort="-tokens",
                is_part=True,
            ),
            _count(
                "cache_write_tokens",
                gettext_lazy("Written to the provider's cache"),
                sort="-tokens",
                is_part=True,
            ),
            _count("output_tokens", gettext_lazy("Output"), sort="-tokens"),
            _count("reasoning_tokens", gettext_lazy("Reasoning"), sort="-tokens", is_part=True),
        ),
    ),
)
ALL_METRICS = {metric.key: metric for group in GROUPS for metric in group.metrics}


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
    if not metric.good or new is None or old is None or metric.text is count_text:
        return ""
    if abs(new - old) < (MIN_POINTS if metric.is_rate else MIN_CHANGE * old):
        return ""
    return "better" if (new > old) == (metric.good > 0) else "worse"


def signed(number: float) -> str:
    return f"{'+' if number > 0 else '−'}{number_format(abs(number), force_grouping=True)}"
