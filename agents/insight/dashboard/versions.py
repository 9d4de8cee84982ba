"""Two versions of an agent compared: all their runs, and pairs on the same inputs.

Runs of one chat resemble each other, so intervals are computed from chats, not from runs. Pairs
are questions of example sets that both versions answered in experiments; a pair's difference
has neither the questions' nor the people's differences in it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import QuerySet, Sum
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from agents.engine import intervals
from agents.engine.intervals import Interval
from agents.metering.figures.models import RunSummary
from agents.metering.figures.query import FiguresQuery
from agents.metering.figures.selection import Selection, Viewer
from agents.metering.figures.windows import Window
from agents.models.types import LazyText
from agents.review.experiments.models import ExperimentResult
from agents.web.figures import metrics
from agents.web.figures.metrics import DASH, Metric, PerRun
from agents.web.presentation.formats.formatting import percent

MAX_CHATS = 20_000
MAX_PAIRS = 2_000
State = ExperimentResult.State


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
    first, second = (
        FiguresQuery(viewer, window, Selection(agent=agent, version=str(version))).summaries()
        for version in versions
    )
    return [
        _line(metric, metric.per_run, first, second)
        for metric in metrics.TABLE
        if metric.per_run is not None
    ]


def _line(
    metric: Metric,
    measure: PerRun,
    first: QuerySet[RunSummary],
    second: QuerySet[RunSummary],
) -> Line:
    first_side, first_mean = _side(measure, first)
    second_side, second_mean = _side(measure, second)
    value = interval = None
    if first_mean is not None and second_mean is not None:
        value = second_mean[0] - first_mean[0]
        error = (first_mean[1] ** 2 + second_mean[1] ** 2) ** 0.5
        interval = intervals.around(value, error)
    write = _points if measure.unit is metrics.RATE else measure.unit.text
    return Line(
        label=measure.label or metric.label,
        sides=(first_side, second_side),
        difference=DASH if value is None else _signed(write, value),
        interval=_interval_text(interval, lambda v: _signed(write, v)),
        verdict=_verdict(value, interval, metric.good),
        tone=_tone(value, interval, metric.good),
        help=measure.help,
    )


def _side(
    measure: PerRun, rows: QuerySet[RunSummary]
) -> tuple[Side, tuple[float, float] | None]:
    """Return a version's side of the line, and its mean with the standard error."""
    grouped = rows.filter(measure.which).order_by().values("topic")
    totals = grouped.annotate(total=Sum(measure.total), number=measure.count)
    clusters = [
        (float(total or 0) / measure.scale, int(number))
        for total, number in totals.values_list("total", "number")[:MAX_CHATS]
    ]
    mean = intervals.clustered_mean(clusters)
    n = sum(number for _total, number in clusters)
    interval = intervals.around(*mean) if mean else None
    if mean and measure.unit is metrics.RATE:
        interval = _rate_interval(mean, n)
    runs = rows.count()
    share = n / runs if runs else 0.0
    side = Side(
        text=measure.unit.text(mean[0]) if mean else DASH,
        interval=_interval_text(interval, measure.unit.text),
        n=n,
        chats=len(clusters),
        coverage=percent(min(1.0, share)),
    )
    return side, mean


def _rate_interval(mean: tuple[float, float], n: int) -> Interval | None:
    """Return Wilson's interval for as many runs as the chats are worth."""
    rate, error = mean
    if error in (0.0, float("inf")) or not 0 < rate < 1:
        return intervals.wilson(round(rate * n), n)
    effective = min(n, max(1, round(rate * (1 - rate) / error**2)))
    return intervals.wilson(round(rate * effective), effective)


def load_pairs(agent: str, versions: tuple[int, int]) -> Pairs | None:
    """Return the scores of both versions on the same examples; None if there are no pairs."""
    scores = [_scores(agent, version) for version in versions]
    example_ids = sorted(scores[0].keys() & scores[1].keys())[:MAX_PAIRS]
    if not example_ids:
        return None
    pairs = [(scores[0][key], scores[1][key]) for key in example_ids]
    scored = [(a, b) for a, b in pairs if a is not None and b is not None]
    differences = [b - a for a, b in scored]
    mean, interval = intervals.paired_mean(differences)
    means = [
        sum(pair[side] for pair in scored) / len(scored) if scored else 0.0 for side in (0, 1)
    ]
    return Pairs(
        n=len(scored),
        diverged=len(pairs) - len(scored),
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
