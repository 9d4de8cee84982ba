"""Two versions of an agent compared: all their runs, and pairs on the same inputs.

Runs of one chat resemble each other, so intervals are computed from chats, not from runs. Pairs
are questions of example sets that both versions answered in experiments; a pair's difference
has neither the questions' nor the people's differences in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents import intervals
from agents.experiments.models import ExperimentResult
from agents.intervals import Interval
from agents.models.types import LazyText

from . import metrics
from .figures import FiguresQuery
from .metrics import DASH
from .models import RunSummary
from .selection import Selection, Viewer
from .totals import COST_LINES, NANOS
from .windows import Window

MAX_CHATS = 20_000
MAX_PAIRS = 2_000
RATES = {"completion", "errors", "satisfaction", "regenerated"}
State = ExperimentResult.State


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measure of a version: its mean per run, from the sum and the count of each chat."""

    key: str
    label: LazyText
    total: Any  # what is added up
    which: Q  # the runs that have it
    write: Callable[[float], str]
    good: int
    help: LazyText = ""


COST = sum((F(name) for name in COST_LINES[1:]), F(COST_LINES[0]))
MEASURED = (
    Measured(
        key="completion",
        label=gettext_lazy("Completion rate"),
        total=F("completed"),
        which=Q(cancelled=0, over_budget=0),
        write=lambda v: metrics.COMPLETION.text(v),
        good=1,
    ),
    Measured(
        key="errors",
        label=gettext_lazy("Error rate"),
        total=F("failed"),
        which=Q(),
        write=lambda v: metrics.ERRORS.text(v),
        good=-1,
    ),
    Measured(
        key="cost",
        label=gettext_lazy("Cost per run"),
        total=COST,
        which=Q(unpriced=0),
        write=lambda v: metrics.COST.text(v / NANOS),
        good=-1,
    ),
    Measured(
        key="active",
        label=gettext_lazy("Mean active time"),
        total=F("active_ms"),
        which=Q(active_count__gt=0),
        write=lambda v: metrics.seconds_text(v / 1000),
        good=-1,
    ),
    Measured(
        key="first",
        label=gettext_lazy("Mean time to first word"),
        total=F("first_ms"),
        which=Q(first_count__gt=0),
        write=lambda v: metrics.seconds_text(v / 1000),
        good=-1,
    ),
    Measured(
        key="regenerated",
        label=gettext_lazy("Regenerated answers"),
        total=F("regenerated"),
        which=Q(),
        write=lambda v: metrics.ERRORS.text(v),
        good=-1,
    ),
    Measured(
        key="satisfaction",
        label=gettext_lazy("Satisfaction"),
        total=F("ratings_up"),
        which=Q(rated__gt=0),
        write=lambda v: metrics.SATISFACTION.text(v),
        good=1,
        help=gettext_lazy("Thumbs up among ratings; coverage is the share of rated runs."),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One version's value with its interval, from `n` runs of `chats` chats."""

    text: str
    interval: str
    n: int
    chats: int
    coverage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    label: LazyText
    sides: tuple[Side, Side]
    difference: str
    interval: str
    verdict: str
    tone: str
    help: LazyText = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Questions that both versions answered in experiments."""

    n: int
    diverged: int  # left out: the recording ended before the answer
    mean: tuple[str, str]
    difference: str
    interval: str
    better: int
    worse: int
    verdict: str
    tone: str


def compare(
    viewer: Viewer, window: Window, agent: str, versions: tuple[int, int]
) -> list[Line]:
    """Return the measures of both versions over all their runs in a window."""
    sides = [_rows(viewer, window, agent, version) for version in versions]
    return [_line(measure, sides[0], sides[1]) for measure in MEASURED]


def _rows(viewer: Viewer, window: Window, agent: str, version: int) -> QuerySet[RunSummary]:
    selection = Selection(agent=agent, version=str(version))
    return FiguresQuery(viewer, window, selection).summaries()


def _clusters(rows: QuerySet[RunSummary], measure: Measured) -> list[tuple[float, int]]:
    """Return the sum and the count of each chat; of ratings, the count is theirs."""
    count: Any = Count("pk")
    if measure.key == "satisfaction":
        count = Sum(F("ratings_up") + F("ratings_down"))
    grouped = rows.filter(measure.which).order_by().values("topic")
    totals = grouped.annotate(total=Sum(measure.total), number=count)
    pairs = totals.values_list("total", "number")[:MAX_CHATS]
    return [(float(total or 0), int(number)) for total, number in pairs]


def _line(measure: Measured, first: QuerySet[RunSummary], second: QuerySet[RunSummary]) -> Line:
    cluster_lists = [_clusters(rows, measure) for rows in (first, second)]
    means = [intervals.clustered_mean(clusters) for clusters in cluster_lists]
    sides = [
        _side(measure, clusters, mean, rows.count())
        for clusters, mean, rows in zip(cluster_lists, means, (first, second), strict=True)
    ]
    difference = _difference(means[0], means[1])
    value, interval = difference if difference else (None, None)
    write = _points if measure.key in RATES else measure.write
    return Line(
        label=measure.label,
        sides=(sides[0], sides[1]),
        difference=DASH if value is None else _signed(write, value),
        interval=_interval_text(interval, lambda v: _signed(write, v)),
        verdict=_verdict(value, interval, measure.good),
        tone=_tone(value, interval, measure.good),
        help=measure.help,
    )


def _side(
    measure: Measured,
    clusters: Sequence[tuple[float, int]],
    mean: tuple[float, float] | None,
    runs: int,
) -> Side:
    n = sum(number for _total, number in clusters)
    interval = intervals.around(*mean) if mean else None
    if mean and measure.key in RATES:
        interval = _rate_interval(mean, n)
    share = n / runs if runs else 0.0
    return Side(
        text=measure.write(mean[0]) if mean else DASH,
        interval=_interval_text(interval, measure.write),
        n=n,
        chats=len(clusters),
        coverage=metrics.COVERAGE.text(min(1.0, share)),
    )


def _rate_interval(mean: tuple[float, float], n: int) -> Interval | None:
    """Return Wilson's interval for as many runs as the chats are worth."""
    rate, error = mean
    if error in (0.0, float("inf")) or not 0 < rate < 1:
        return intervals.wilson(round(rate * n), n)
    effective = min(n, max(1, round(rate * (1 - rate) / error**2)))
    return intervals.wilson(round(rate * effective), effective)


def _difference(
    first: tuple[float, float] | None, second: tuple[float, float] | None
) -> tuple[float, Interval | None] | None:
    if first is None or second is None:
        return None
    error = (first[1] ** 2 + second[1] ** 2) ** 0.5
    value = second[0] - first[0]
    return value, intervals.around(value, error)


def load_pairs(agent: str, versions: tuple[int, int]) -> Pairs | None:
    """Return the scores of both versions on the same examples; None if there are no pairs."""
    scores = [_scores(agent, version) for version in versions]
    example_ids = sorted(scores[0].keys() & scores[1].keys())[:MAX_PAIRS]
    if not example_ids:
        return None
    pairs = [(scores[0][key], scores[1][key]) for key in example_ids]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    differences = [b - a for a, b in known]
    mean, interval = intervals.paired_mean(differences)
    means = [
        sum(pair[side] for pair in known) / len(known) if known else 0.0 for side in (0, 1)
    ]
    percent = metrics.COVERAGE.text
    return Pairs(
        n=len(known),
        diverged=len(pairs) - len(known),
        mean=(percent(means[0]), percent(means[1])),
        difference=_signed(_points, mean),
        interval=_interval_text(interval, lambda v: _signed(_points, v)),
        better=sum(value > 0 for value in differences),
        worse=sum(value < 0 for value in differences),
        verdict=_verdict(mean, interval, 1),
        tone=_tone(mean, interval, 1),
    )


def _scores(agent: str, version: int) -> dict[int, float | None]:
    """Return the newest score of each example; None where the recording ended too early."""
    rows = ExperimentResult.objects.filter(
        experiment__agent__name=agent,
        experiment__version=version,
        example__isnull=False,
        state__in=[State.PASSED, State.FAILED, State.DIVERGED],
    ).exclude(experiment__target="draft")
    scores = rows.order_by("pk").values_list("example_id", "score", "state")
    return {
        example: None if state == State.DIVERGED else score for example, score, state in scores
    }


def _verdict(value: float | None, interval: Interval | None, good: int) -> str:
    if value is None or interval is None:
        return _("Too little data")
    if interval.has_zero:
        return _("No measurable difference")
    return _("Better") if (value > 0) == (good > 0) else _("Worse")


def _tone(value: float | None, interval: Interval | None, good: int) -> str:
    if value is None or interval is None or interval.has_zero:
        return ""
    return "better" if (value > 0) == (good > 0) else "worse"


def _signed(write: Callable[[float], str], value: float) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    return f"{sign}{write(abs(value))}"


def _points(value: float) -> str:
    return _("%(points)s pts") % {"points": number_format(round(value * 100, 1))}


def _interval_text(interval: Interval | None, write: Callable[[float], str]) -> str:
    return "" if interval is None else f"{write(interval.low)} – {write(interval.high)}"
