"""The timeline of a replay: what happened when, in a few words."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal

from django.utils.translation import gettext as _

from agents.access.masking import mask_text
from agents.db.sentences import translate
from agents.engine.events import DELTA_TYPES, Event, EventType, StatusKind
from agents.engine.loop import BUDGET
from agents.models import Disconnection, Run
from agents.review.replays.replay import MAX_FRAMES, elapsed_ms
from agents.web.presentation.decisions.limit_requests import LimitRequestView
from agents.web.presentation.formats import status_text
from agents.web.presentation.formats.formatting import one_line
from agents.web.presentation.steps import step_notes

SegmentWork = Literal["run", "thought", "tool", "plan", "guardrail"]
SegmentKind = SegmentWork | Literal["waiting", "failed", "stopped", "resumed", "away"]

# Events displayed with another one: a tool's result, when its step ends.
HIDDEN_TYPES = (EventType.USAGE, EventType.THOUGHT, EventType.TOOL_RESPONSE)
END_KINDS: dict[str, SegmentKind] = {Run.Status.COMPLETED: "run", Run.Status.FAILED: "failed"}
MIN_GAP_MS = 1000
WIDTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A point on the timeline: an event, or something between two."""

    seq: int
    ms: int
    kind: SegmentKind
    words: str
    step: int = 0
    x: float = 0.0
    is_between: bool = False

    @property
    def address(self) -> str:
        return f"?at={self.seq}&ms={self.ms}" if self.is_between else f"?at={self.seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A span in which nothing happened; `is_ours` while waiting for a person."""

    x: float
    width: float
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DisconnectionSpan:
    """A span in which the user's page was away."""

    start: int
    end: int | None
    is_lost: bool
    x: float
    width: float


class ReplayTimeline:
    """The timeline of a whole run."""

    def __init__(self, run: Run, *, is_masked: bool = False) -> None:
        self.run = run
        self._shown = mask_text if is_masked else str
        rows = run.events.order_by("seq").values_list("type", "time")
        self._events = [(type, elapsed_ms(run, time)) for type, time in rows]

    @property
    def last(self) -> int:
        return len(self._events)

    @cached_property
    def duration(self) -> int:
        return max((ms for _type, ms in self._events), default=0)

    @property
    def starts(self) -> list[int]:
        """The start times of its chunks."""
        return [0, *(ms for _type, ms in self._events[MAX_FRAMES - 1 :: MAX_FRAMES])]

    @cached_property
    def marks(self) -> list[Marker]:
        marks = []
        described: tuple[SegmentKind, str] | None
        rows = self.run.events.exclude(type__in=[*DELTA_TYPES, *HIDDEN_TYPES])
        for event in (row.value for row in rows.order_by("seq")):
            if event.type is EventType.RUN_FINISHED:
                ending = status_text.ending_sentence(self.run) or _("Answer complete")
                described = END_KINDS.get(self.run.status, "stopped"), ending
            else:
                described = describe_event(event)
            if described is not None:
                kind, sentence = described
                ms = elapsed_ms(self.run, event.time)
                marks.append(
                    Marker(
                        seq=event.seq,
                        ms=ms,
                        kind=kind,
                        words=one_line(self._shown(sentence)),
                        step=event.data.get("step", 0),
                        x=self._x(ms),
                    )
                )
        # The latest time up to each event, because parallel ones may be out of sequence.
        latest_times = list(accumulate((ms for _type, ms in self._events), max))
        for row in self._disconnection_rows:
            for time, sentence in disconnection_events(row):
                ms = elapsed_ms(self.run, time)
                if ms <= self.duration:
                    marks.append(
                        Marker(
                            seq=bisect_right(latest_times, ms),
                            ms=ms,
                            kind="away",
                            words=sentence,
                            x=self._x(ms),
                            is_between=True,
                        )
                    )
        return sorted(marks, key=_position)

    @cached_property
    def disconnections(self) -> list[DisconnectionSpan]:
        spans = []
        for row in self._disconnection_rows:
            start = elapsed_ms(self.run, row.left_at)
            end = None if row.came_back_at is None else elapsed_ms(self.run, row.came_back_at)
            until = self.duration if end is None else min(end, self.duration)
            spans.append(
                DisconnectionSpan(
                    start=start,
                    end=end,
                    is_lost=row.reason == Disconnection.Reason.LOST,
                    x=self._x(start),
                    width=round(self._x(until) - self._x(start), 2),
                )
            )
        return spans

    def away(self, ms: int) -> DisconnectionSpan | None:
        """Return the disconnection at this time; a lost connection takes precedence."""
        current = [
            span
            for span in self.disconnections
            if span.start <= ms and (span.end is None or ms < span.end)
        ]
        return max(current, key=lambda span: span.is_lost, default=None)

    @property
    def gaps(self) -> Iterator[Gap]:
        is_ours = False
        for (type, start), (_next, end) in pairwise([("", 0), *self._events]):
            # One of several requests may be decided long before the others.
            is_still = is_ours and type == EventType.APPROVAL_RESOLVED
            is_ours = type == EventType.RUN_PAUSED or is_still
            if end - start > MIN_GAP_MS:
                x = self._x(start)
                yield Gap(x=x, width=round(self._x(end) - x, 2), is_ours=is_ours)

    def ms(self, seq: int) -> int:
        return self._events[seq - 1][1] if seq else 0

    def within(self, seq: int, ms: int) -> int:
        """Return the closest time between that event and the next one."""
        until = self.ms(seq + 1) if seq < self.last else self.duration
        return max(self.ms(seq), min(ms, until))

    def at(self, seq: int, ms: int) -> Marker | None:
        """Return the last marker at this point."""
        earlier = (mark for mark in reversed(self.marks) if _position(mark) <= (seq, ms))
        return next(earlier, None)

    def before(self, seq: int, ms: int) -> str:
        earlier = (
            marker.address for marker in reversed(self.marks) if _position(marker) < (seq, ms)
        )
        return next(earlier, "?at=0")

    def next(self, seq: int, ms: int) -> str:
        later = (marker.address for marker in self.marks if _position(marker) > (seq, ms))
        return next(later, f"?at={self.last}")

    @cached_property
    def _disconnection_rows(self) -> list[Disconnection]:
        """Return the disconnections that started during the run."""
        rows = self.run.disconnections.order_by("left_at", "pk")
        return [row for row in rows if elapsed_ms(self.run, row.left_at) <= self.duration]

    def _x(self, ms: int) -> float:
        return round(ms / max(self.duration, 1) * WIDTH, 2)


def _position(marker: Marker) -> tuple[int, int]:
    return marker.seq, marker.ms


def disconnection_events(disconnection: Disconnection) -> Iterator[tuple[datetime, str]]:
    """Yield when a page left and returned, as text."""
    is_lost = disconnection.reason == Disconnection.Reason.LOST
    sentence = _("The page lost its connection") if is_lost else _("The page was closed")
    yield disconnection.left_at, sentence
    if disconnection.came_back_at is not None:
        yield disconnection.came_back_at, _("The page reconnected")


def parse_number(text: str | None, limit: int) -> int:
    """Return the event number of a URL, clamped to the range."""
    digits = text or ""
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return min(int(digits[:12]), limit)


def describe_event(event: Event) -> tuple[SegmentKind, str] | None:
    """Return a short description of an event; None if it belongs to another one."""
    data = event.data
    match event.type:
        case EventType.RUN_STARTED:
            return "run", _("%(agent)s started") % {"agent": event.agent}
        case EventType.HANDOFF:
            return "run", _("%(agent)s took over") % {"agent": event.agent}
        case EventType.HANDOFF_RETURN:
            return "run", _("%(agent)s returned its answer") % {"agent": event.agent}
        case EventType.STEP_STARTED:
            return "thought", _("%(agent)s is thinking") % {"agent": event.agent}
        case EventType.TOOL_CALL:
            return "tool", _("%(tool)s called") % {"tool": data["function"]["name"]}
        case EventType.STEP if data["kind"] == "tool":
            # Interrupted and rejected calls have other events.
            tool = data.get("action", "")
            if data["status"] == "done":
                return "tool", _("%(tool)s returned a result") % {"tool": tool}
            if data["status"] == "failed" and tool:
                return "failed", _("%(tool)s failed") % {"tool": tool}
            return None
        case EventType.TASK if data["kind"] == "task":
            return "plan", _("%(step)s started") % {"step": data["name"]}
        case EventType.PLAN:
            return "plan", _("Plan: %(words)s") % {"words": data["description"]}
        case EventType.EVALUATION:
            params = {"why": translate(data["reason"])}
            if data["is_met"]:
                return "plan", _("As expected: %(why)s") % params
            return "failed", _("Not as expected: %(why)s") % params
        case EventType.STEP if data["kind"] == "task":
            # Nothing if it simply succeeded.
            params = {"step": data.get("action", ""), "why": translate(data.get("reason", ""))}
            if data["status"] == "failed" and params["step"]:
                return "failed", _("%(step)s failed: %(why)s") % params
            if data["status"] == "skipped":
                return "plan", _("%(step)s skipped: %(why)s") % params
            return None
        case EventType.GUARDRAIL:
            return "guardrail", _("Guardrail: %(reason)s") % {
                "reason": translate(data["reason"])
            }
        case EventType.ERROR:
            return "failed", translate(data["message"])
    return _describe_waiting(event)


def _describe_waiting(event: Event) -> tuple[SegmentKind, str] | None:
    data = event.data
    match event.type:
        case EventType.APPROVAL_REQUESTED if data["why"] == "plan":
            return "waiting", _("Plan approval requested")
        case EventType.APPROVAL_REQUESTED if data["why"] == "elicitation":
            params = {"tool": data["function"]["name"]}
            return "waiting", _("%(tool)s asked the user a question") % params
        case EventType.APPROVAL_RESOLVED if data.get("why") == "elicitation":
            if not data.get("by_name", ""):
                params = {"why": translate(data["reason"])}
                return "waiting", _("Question closed without an answer: %(why)s") % params
            params = {"person": data["by_name"]}
            if data["action"] == "accept":
                return "waiting", _("%(person)s answered the question") % params
            if data["action"] == "decline":
                return "waiting", _("%(person)s declined to answer") % params
            return "waiting", _("%(person)s closed the question") % params
        case EventType.APPROVAL_REQUESTED if data["why"] == BUDGET:
            return "waiting", LimitRequestView.of(data).title
        case EventType.APPROVAL_REQUESTED:
            name = data["function"]["name"]
            return "waiting", _("Approval requested for %(tool)s") % {"tool": name}
        case EventType.APPROVAL_RESOLVED:
            params = {"person": data.get("by_name", "")}
            approved = _("%(person)s approved")
            rejected = _("%(person)s rejected")
            return "waiting", (approved if data["is_approved"] else rejected) % params
        case EventType.RUN_PAUSED:
            return "waiting", _("Waiting for user input")
        case EventType.STATUS if data["kind"] == StatusKind.TOOL_PROGRESS:
            return None  # the step has a bar; a line per report would bury the rest
        case EventType.STATUS if sentence := step_notes.note_sentence(dict(data)):
            return ("resumed" if data["kind"] == "resumed" else "run"), sentence
    return None
