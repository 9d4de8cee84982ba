"""Charts above the list: runs, failures and active time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from django.utils.translation import gettext as _

from agents.metering.figures.histograms import exact_percentile
from agents.models import Run
from agents.review.run_list.listing import RunMatch
from agents.web.presentation.formats.dates import datetime_text
from agents.web.presentation.formats.formatting import duration

BAR_COUNT = 40
WIDTH = 160
HEIGHT = 32
MIN_RUNS = 2
MIN_BAR_HEIGHT = 1.5
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
    peak: str
    peak_at: datetime

    box: ClassVar[str] = f"0 0 {WIDTH} {HEIGHT}"
    bar_width: ClassVar[str] = f"{WIDTH / BAR_COUNT * 0.72:.2f}"

    @property
    def sentence(self) -> str:
        return _("%(title)s since %(since)s: %(amount)s. Peak around %(at)s: %(most)s.") % {
            "title": self.title,
            "since": datetime_text(self.since),
            "amount": self.amount,
            "at": datetime_text(self.peak_at),
            "most": self.peak,
        }


def build_charts(matches: Sequence[RunMatch]) -> list[Chart]:
    """Build charts of the matches, newest first; a single run has none."""
    if len(matches) < MIN_RUNS:
        return []
    histogram = RunHistogram.of(matches)
    return [
        histogram.chart("volume", _("Runs"), len, _format_count),
        histogram.chart("failures", _("Failed"), count_failed, _format_count),
        histogram.chart("p95", _("p95 active time"), p95, _format_seconds),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistogram:
    """Runs in `BARS` time spans, ending with the newest run's."""

    matches: Sequence[RunMatch]
    buckets: list[list[RunMatch]]
    since: datetime
    span: timedelta

    @classmethod
    def of(cls, matches: Sequence[RunMatch]) -> "RunHistogram":
        first = matches[-1].started_at
        last = matches[0].started_at
        span = next(
            (span for span in BUCKET_SPANS if span * BAR_COUNT > last - first), BUCKET_SPANS[-1]
        )
        since = last - span * BAR_COUNT
        buckets: list[list[RunMatch]] = [[] for _ in range(BAR_COUNT)]
        for run in matches:
            buckets_back = int((last - run.started_at) / span)
            buckets[BAR_COUNT - 1 - min(max(buckets_back, 0), BAR_COUNT - 1)].append(run)
        return cls(matches=matches, buckets=buckets, since=since, span=span)

    def chart(
        self, name: str, title: str, measure: Measure, format_value: FormatValue
    ) -> Chart:
        values = [measure(bucket) for bucket in self.buckets]
        peak = max(values)
        bars = []
        for index, value in enumerate(values):
            if value:
                height = max(MIN_BAR_HEIGHT, value / peak * HEIGHT)
                x = index * WIDTH / BAR_COUNT
                y = HEIGHT - height
                bars.append(ChartBar(x=f"{x:.2f}", y=f"{y:.2f}", height=f"{height:.2f}"))
        return Chart(
            name=name,
            title=title,
            amount=format_value(measure(self.matches)),
            bars=bars,
            since=self.matches[-1].started_at,
            peak=format_value(peak),
            peak_at=self.since + self.span * values.index(peak),
        )


def p95(matches: Iterable[RunMatch]) -> float:
    """Return the 95th percentile of seconds; 0 if no run has ended."""
    durations = (run.active for run in matches if run.active is not None)
    return exact_percentile(durations, 0.95) or 0.0


def count_failed(matches: Iterable[RunMatch]) -> int:
    return sum(run.status == Run.Status.FAILED for run in matches)


def _format_count(amount: float) -> str:
    return f"{amount:,}"


def _format_seconds(seconds: float) -> str:
    return duration(seconds * 1000)
