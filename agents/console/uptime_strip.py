"""The last day of an MCP server: a strip to see, and the same in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Literal

from django.utils import timezone
from django.utils.formats import time_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.catalog.mcp_servers import SAMPLED_FOR
from agents.models import McpServer, ServerSample

from . import figures

SLOT = timedelta(minutes=15)
SLOTS = SAMPLED_FOR // SLOT
WIDTH, GAP, HEIGHT, LEAST = 10, 2, 48, 12
MOST_OUTAGES = 5

State = Literal["up", "down", "both", "none"]
Samples = Sequence[ServerSample]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A quarter of an hour: as high as it was slow, or all the way where it was down."""

    x: int
    height: int
    state: State
    words: str

    @property
    def y(self) -> int:
        return HEIGHT - self.height


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    bars: list[Bar]
    words: str
    outages: list[str]

    width = SLOTS * WIDTH
    bar_width = WIDTH - GAP
    height = HEIGHT


def of(server: McpServer, now: datetime | None = None) -> Strip:
    now = now or timezone.now()
    since = now - SAMPLED_FOR
    samples = list(server.samples.filter(at__gt=since, at__lte=now).order_by("at"))
    slots: list[list[ServerSample]] = [[] for _slot in range(SLOTS)]
    for sample in samples:
        slots[min((sample.at - since) // SLOT, SLOTS - 1)].append(sample)
    slowest = max(_latencies(samples), default=1.0)
    bars = [_bar(n, since + n * SLOT, found, slowest) for n, found in enumerate(slots)]
    return Strip(bars=bars, words=_words(samples), outages=list(_outages(samples)))


def _bar(number: int, begins: datetime, samples: Samples, slowest: float) -> Bar:
    state = _state(samples)
    height = {"down": HEIGHT, "both": HEIGHT, "none": 2}.get(state, LEAST)
    took = median(_latencies(samples)) if _latencies(samples) else None
    if state == "up" and took is not None:
        height = max(LEAST, round(HEIGHT * 0.8 * took / slowest))
    told = [_span(begins, begins + SLOT), str(STATES[state]())]
    told += [figures.milliseconds(took)] if took is not None else []
    return Bar(x=number * WIDTH, height=height, state=state, words=" · ".join(told))


def _state(samples: Samples) -> State:
    found = {sample.is_up for sample in samples}
    if not found:
        return "none"
    return "both" if len(found) > 1 else "up" if found == {True} else "down"


STATES = {
    "up": lambda: _("in order"),
    "down": lambda: _("out of order"),
    "both": lambda: _("out of order for a part of it"),
    "none": lambda: _("not looked at"),
}


def _words(samples: Samples) -> str:
    if not samples:
        return _("Not looked at in the last 24 hours: that is done when it is used or tested.")
    count = len(samples)
    looked = ngettext(
        "In order in %(share)s of %(count)d look in the last 24 hours.",
        "In order in %(share)s of %(count)d looks in the last 24 hours.",
        count,
    ) % {"share": figures.percent(sum(s.is_up for s in samples) / count), "count": count}
    took = _latencies(samples)
    if not took:
        return looked
    times = {"median": figures.milliseconds(median(took))}
    times["most"] = figures.milliseconds(max(took))
    answered = _("It answered within %(median)s in the median, %(most)s at most.") % times
    return f"{looked} {answered}"


def _outages(samples: Samples) -> Iterator[str]:
    """When it was out of order, the latest first: from a look that failed to a good one."""
    spans: list[tuple[datetime, datetime | None]] = []
    began = None
    for sample in samples:
        if not sample.is_up:
            began = began or sample.at
        elif began:
            spans.append((began, sample.at))
            began = None
    if began:
        spans.append((began, None))
    for begins, ends in spans[: -MOST_OUTAGES - 1 : -1]:
        yield _span(begins, ends)


def _span(begins: datetime, ends: datetime | None) -> str:
    if ends is None:
        return _("since %(time)s") % {"time": _clock(begins)}
    return f"{_clock(begins)}–{_clock(ends)}"


def _clock(moment: datetime) -> str:
    return time_format(timezone.localtime(moment), "H:i")


def _latencies(samples: Samples) -> list[float]:
    return [s.latency_ms for s in samples if s.is_up and s.latency_ms is not None]
