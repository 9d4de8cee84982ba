"""The last day of an MCP server: as a chart and as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Literal

from django.utils import timezone
from django.utils.formats import time_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.catalog.mcp_servers import SAMPLE_RETENTION
from agents.models import McpServer, ServerSample
from agents.web.presentation.formats import formatting

SLOT = timedelta(minutes=15)
SLOT_COUNT = SAMPLE_RETENTION // SLOT
SLOT_WIDTH = 10
GAP = 2
HEIGHT = 48
MIN_HEIGHT = 12
MAX_OUTAGES = 5

UptimeState = Literal["up", "down", "both", "none"]
Samples = Sequence[ServerSample]


@dataclass(frozen=True, slots=True, kw_only=True)
class UptimeBar:
    """A quarter of an hour: height by latency, or full height if down."""

    x: int
    height: int
    state: UptimeState
    words: str

    @property
    def y(self) -> int:
        return HEIGHT - self.height


@dataclass(frozen=True, slots=True, kw_only=True)
class UptimeStrip:
    bars: list[UptimeBar]
    words: str
    outages: list[str]

    width = SLOT_COUNT * SLOT_WIDTH
    bar_width = SLOT_WIDTH - GAP
    height = HEIGHT


def build_strip(server: McpServer, until: datetime | None = None) -> UptimeStrip:
    until = until or timezone.now()
    since = until - SAMPLE_RETENTION
    samples = list(server.samples.filter(at__gt=since, at__lte=until).order_by("at"))
    slots: list[list[ServerSample]] = [[] for _slot in range(SLOT_COUNT)]
    for sample in samples:
        slots[min((sample.at - since) // SLOT, SLOT_COUNT - 1)].append(sample)
    slowest = max(_latencies(samples), default=1.0)
    bars = []
    for number, slot_samples in enumerate(slots):
        begins = since + number * SLOT
        outcomes = {sample.is_up for sample in slot_samples}
        state: UptimeState = "none"
        if outcomes:
            state = "both" if len(outcomes) > 1 else "up" if outcomes == {True} else "down"
        height = {"down": HEIGHT, "both": HEIGHT, "none": 2}.get(state, MIN_HEIGHT)
        latency = median(_latencies(slot_samples)) if _latencies(slot_samples) else None
        if state == "up" and latency is not None:
            height = max(MIN_HEIGHT, round(HEIGHT * 0.8 * latency / slowest))
        texts = [_format_span(begins, begins + SLOT), str(STATE_LABELS[state]())]
        if latency is not None:
            texts.append(formatting.milliseconds(latency))
        bars.append(
            UptimeBar(
                x=number * SLOT_WIDTH, height=height, state=state, words=" · ".join(texts)
            )
        )
    return UptimeStrip(bars=bars, words=_summary(samples), outages=list(_outages(samples)))


STATE_LABELS = {
    "up": lambda: _("healthy"),
    "down": lambda: _("failing"),
    "both": lambda: _("failing part of the time"),
    "none": lambda: _("no data"),
}


def _summary(samples: Samples) -> str:
    if not samples:
        return _(
            "No checks in the last 24 hours. The server is checked when it's used or tested."
        )
    count = len(samples)
    uptime = ngettext(
        "Healthy in %(share)s of %(count)d check in the last 24 hours.",
        "Healthy in %(share)s of %(count)d checks in the last 24 hours.",
        count,
    ) % {"share": formatting.percent(sum(s.is_up for s in samples) / count), "count": count}
    latencies = _latencies(samples)
    if not latencies:
        return uptime
    params = {"median": formatting.milliseconds(median(latencies))}
    params["most"] = formatting.milliseconds(max(latencies))
    response_times = _("Response time: median %(median)s, max %(most)s.") % params
    return f"{uptime} {response_times}"


def _outages(samples: Samples) -> Iterator[str]:
    """Yield outages, latest first: from a failed check to a good one."""
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
    for begins, ends in spans[: -MAX_OUTAGES - 1 : -1]:
        yield _format_span(begins, ends)


def _format_span(begins: datetime, ends: datetime | None) -> str:
    if ends is None:
        return _("since %(time)s") % {"time": _format_time(begins)}
    return f"{_format_time(begins)}–{_format_time(ends)}"


def _format_time(moment: datetime) -> str:
    return time_format(timezone.localtime(moment), "H:i")


def _latencies(samples: Samples) -> list[float]:
    return [s.latency_ms for s in samples if s.is_up and s.latency_ms is not None]
