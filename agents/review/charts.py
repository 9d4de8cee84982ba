"""Charts above the list: runs, failures and active time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from django.utils.translation import gettext as _

from agents.models import Run
from agents.review.listing import RunMatch
from agents.web.presentation.dates import datetime_text
from agents.web.presentation.formatting import duration

BAR_COUNT = 40
WIDTH, HEIGHT = 160, 32
MIN_RUNS, MIN_BAR_HEIGHT = 2, 1.5
# The time span of a bar, in round numbers.
BUCKET_SPANS = [timedelta(minutes=n) for n in (1, 2, 5, 10, 20, 30)]
BUCKET_SPANS += [timedelta(hours=n) for n in (1, 2, 3, 4, 6, 8, 12)]
BUCKET_SPANS += [timedelta(days=n) for n in (1, 2, 3, 5, 7, 14, 30, 90, 365)]

Measure = Callable[[Sequence[RunMatch]], float]
FormatValue = Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBar:
    """A bar's position, as written to the SVG."""

    x: str
    y: str
    height: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One measure over time, as a chart and as text."""

    name: str
    title: str
    amount: str
    bars: list[ChartBar]
    since: datetime
    most: str
    most_at: datetime

    box: ClassVar[str] = f"0 0 {WIDTH} {HEIGHT}"
    bar_width: ClassVar[str] = f"{WIDTH / BAR_COUNT * 0.72:.2f}"

    @property
    def sentence(self) -> str:
        about = {"title": self.title, "amount": self.amount, "most": self.most}
        about |= {"since": _format_time(self.since), "at": _format_time(self.most_at)}
        return _("%(title)s since %(since)s: %(amount)s. Peak around %(at)s: %(most)s.") % about


def build_charts(found: Sequence[RunMatch]) -> list[Chart]:
    """Build charts of the matches, newest first; a single run has none."""
    if len(found) < MIN_RUNS:
        return []
    line = RunHistogram.of(found)
    return [
        line.chart("volume", _("Runs"), len, _format_count),
        line.chart("failures", _("Failed"), count_failed, _format_count),
        line.chart("p95", _("p95 active time"), p95, _format_seconds),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistogram:
    """Runs in `BARS` time spans, ending with the newest run's."""

    found: Sequence[RunMatch]
    buckets: list[list[RunMatch]]
    since: datetime
    span: timedelta

    @classmethod
    def of(cls, found: Sequence[RunMatch]) -> "RunHistogram":
        first, last = found[-1].started_at, found[0].started_at
        span = next(
            (span for span in BUCKET_SPANS if span * BAR_COUNT > last - first), BUCKET_SPANS[-1]
        )
        since = last - span * BAR_COUNT
        buckets: list[list[RunMatch]] = [[] for _ in range(BAR_COUNT)]
        for run in found:
            before = int((last - run.started_at) / span)
            buckets[BAR_COUNT - 1 - min(max(before, 0), BAR_COUNT - 1)].append(run)
        return cls(found=found, buckets=buckets, since=since, span=span)

    def chart(self, name: str, title: str, measure: Measure, written: FormatValue) -> Chart:
        values = [measure(bucket) for bucket in self.buckets]
        most = max(values)
        return Chart(
            name=name,
            title=title,
            amount=written(measure(self.found)),
            bars=[_bar(at, value / most) for at, value in enumerate(values) if value],
            since=self.found[-1].started_at,
            most=written(most),
            most_at=self.since + self.span * values.index(most),
        )


def _bar(at: int, share: float) -> ChartBar:
    height = max(MIN_BAR_HEIGHT, share * HEIGHT)
    x, y = at * WIDTH / BAR_COUNT, HEIGHT - height
    return ChartBar(x=f"{x:.2f}", y=f"{y:.2f}", height=f"{height:.2f}")


def p95(found: Iterable[RunMatch]) -> float:
    """Return the 95th percentile; 0 if no run has ended."""
    took = sorted(run.active for run in found if run.active is not None)
    return took[min(len(took) - 1, int(len(took) * 0.95))] if took else 0.0


def count_failed(found: Iterable[RunMatch]) -> int:
    return sum(run.status == Run.Status.FAILED for run in found)


def _format_count(amount: float) -> str:
    return f"{amount:,}"


def _format_seconds(seconds: float) -> str:
    return duration(seconds * 1000)


def _format_time(at: datetime) -> str:
    return datetime_text(at)
