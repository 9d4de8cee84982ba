"""The lines above the list: how many runs, how many failed, how long they were at work."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from django.utils import formats, timezone
from django.utils.translation import gettext as _

from agents.models import Run
from agents.review.listing import Found
from agents.web.presentation.formatting import duration

BARS = 40
WIDTH, HEIGHT = 160, 32
LEAST, LOWEST = 2, 1.5
# What a bar stands for: something one would say of a time.
SPANS = [timedelta(minutes=n) for n in (1, 2, 5, 10, 20, 30)]
SPANS += [timedelta(hours=n) for n in (1, 2, 3, 4, 6, 8, 12)]
SPANS += [timedelta(days=n) for n in (1, 2, 3, 5, 7, 14, 30, 90, 365)]

Measure = Callable[[Sequence[Found]], float]
Written = Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A place on the drawing, as it is written there."""

    x: str
    y: str
    height: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One measure over time, drawn and in words."""

    name: str
    title: str
    amount: str
    bars: list[Bar]
    since: datetime
    most: str
    most_at: datetime

    box: ClassVar[str] = f"0 0 {WIDTH} {HEIGHT}"
    bar_width: ClassVar[str] = f"{WIDTH / BARS * 0.72:.2f}"

    @property
    def sentence(self) -> str:
        about = {"title": self.title, "amount": self.amount, "most": self.most}
        about |= {"since": _moment(self.since), "at": _moment(self.most_at)}
        return (
            _("%(title)s since %(since)s: %(amount)s. Highest around %(at)s: %(most)s.") % about
        )


def charts(found: Sequence[Found]) -> list[Chart]:
    """Of runs that were found, newest first; of one alone there is nothing to draw."""
    if len(found) < LEAST:
        return []
    line = Timeline.of(found)
    return [
        line.chart("volume", _("Runs"), len, _counted),
        line.chart("failures", _("Failed"), failed, _counted),
        line.chart("p95", _("p95 active time"), p95, _timed),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Runs put into `BARS` spans of time, the last of which is that of the newest."""

    found: Sequence[Found]
    buckets: list[list[Found]]
    since: datetime
    span: timedelta

    @classmethod
    def of(cls, found: Sequence[Found]) -> "Timeline":
        first, last = found[-1].started_at, found[0].started_at
        span = next((span for span in SPANS if span * BARS > last - first), SPANS[-1])
        since, buckets = last - span * BARS, [[] for _ in range(BARS)]
        for run in found:
            before = int((last - run.started_at) / span)
            buckets[BARS - 1 - min(max(before, 0), BARS - 1)].append(run)
        return cls(found=found, buckets=buckets, since=since, span=span)

    def chart(self, name: str, title: str, measure: Measure, written: Written) -> Chart:
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


def _bar(at: int, share: float) -> Bar:
    height = max(LOWEST, share * HEIGHT)
    x, y = at * WIDTH / BARS, HEIGHT - height
    return Bar(x=f"{x:.2f}", y=f"{y:.2f}", height=f"{height:.2f}")


def p95(found: Iterable[Found]) -> float:
    """What all but the slowest twentieth stay below; 0 where none is over yet."""
    took = sorted(run.active for run in found if run.active is not None)
    return took[min(len(took) - 1, int(len(took) * 0.95))] if took else 0.0


def failed(found: Iterable[Found]) -> int:
    return sum(run.status == Run.Status.FAILED for run in found)


def _counted(amount: float) -> str:
    return f"{amount:,}"


def _timed(seconds: float) -> str:
    return duration(seconds * 1000)


def _moment(at: datetime) -> str:
    return formats.date_format(timezone.localtime(at), "SHORT_DATETIME_FORMAT")
