"""Time limits for steps: what is still running is cancelled and reported."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from time import monotonic
from typing import Any

from agents.engine.loop.approval import ELICITATION
from agents.engine.loop.call_events import PREVIEW_CHARS
from agents.engine.loop.run_limits import BUDGET

from ..events import Event, EventFactory, EventType
from ..tool import uncertain_message

OPENING_TYPES = {
    EventType.TASK,
    EventType.STEP_STARTED,
    EventType.APPROVAL_REQUESTED,
    EventType.TOOL_CALL,
    EventType.TOOL_RESPONSE,
}

Events = AsyncGenerator[Event, None]


class TimeLimitedStream:
    """A stream with a time limit in seconds; None means no limit.

    `recorded_events` are those recorded before an interruption.
    """

    def __init__(
        self,
        stream: Events,
        seconds: float | None,
        emit: EventFactory,
        recorded_events: Iterable[Event] = (),
    ) -> None:
        self.stream = stream
        self.seconds = seconds
        self.emit = emit
        self.is_late = False
        self._open: dict[int, Event] = {}
        self._questions: set[str] = set()
        self._since = 0.0
        for event in recorded_events:
            self._track_open(event)

    @property
    def reason(self) -> str:
        """Why there is no result, for the decision about a retry."""
        is_unsure = any(_final_status(last) == "unknown" for last in self._open.values())
        return self._timeout_message(is_unsure)

    def _timeout_message(self, is_unsure: bool) -> str:
        message = f"Timed out after {self.seconds:g} s."
        return uncertain_message(message) if is_unsure else message

    async def events(self) -> Events:
        end = monotonic() + self.seconds if self.seconds else None
        async with aclosing(self.stream):
            while (event := await self._next_event(end)) is not None:
                self._track_open(event)
                end = end and self._shift(event, end)
                yield event
        for event in self._closing_events() if self.is_late else ():
            yield event

    def _shift(self, event: Event, end: float) -> float:
        """Return the time limit without the time a running call waits for the user."""
        if event.data.get("why") != ELICITATION:
            return end
        had, now = bool(self._questions), monotonic()
        if event.type is EventType.APPROVAL_REQUESTED:
            self._questions.add(event.data["id"])
            self._since = self._since if had else now
        else:
            self._questions.discard(event.data["id"])
        return end + now - self._since if had and not self._questions else end

    async def _next_event(self, end: float | None) -> Event | None:
        seconds_left = None if end is None or self._questions else max(0.0, end - monotonic())
        try:
            async with asyncio.timeout(seconds_left) as timeout:
                return await anext(self.stream)
        except StopAsyncIteration:
            return None
        except TimeoutError:
            if not timeout.expired():
                raise
            self.is_late = True
            return None

    def _track_open(self, event: Event) -> None:
        """Track open rows, in case they have to be closed from here."""
        if event.type in OPENING_TYPES and event.data.get("why") not in {ELICITATION, BUDGET}:
            self._open[event.data["step"]] = event
        elif event.type is EventType.STEP:
            self._open.pop(event.data["step"], None)

    def _closing_events(self) -> Iterator[Event]:
        for started in reversed(self._open.values()):
            emit = self.emit.child(started.agent, started.data["parent"])
            about = {"step": started.data["step"], "turn": started.data["turn"]}
            if started.type is EventType.TOOL_CALL:
                yield emit(EventType.TOOL_RESPONSE, **self._timeout_response(started), **about)
            kind = started.data.get("kind", "tool")
            yield emit(EventType.STEP, kind=kind, status=_final_status(started), **about)

    def _timeout_response(self, started: Event) -> dict[str, Any]:
        message = f"Error: {self._timeout_message(_final_status(started) == 'unknown')}"
        call = started.data
        return {
            "tool_call_id": call["id"],
            "name": call["function"]["name"],
            "content": message,
            "content_preview": message[:PREVIEW_CHARS],
            "is_error": True,
            "attempts": 1,
            "started": call["started"],
        }


def _final_status(last: Event) -> str:
    """Return the final status of a row, given its last event."""
    match last.type, last.data:
        case (EventType.TOOL_CALL, {"effect": "at_most_once"}) | (_, {"why": "unknown"}):
            return "unknown"
        case EventType.TOOL_RESPONSE, {"is_error": False}:
            return "done"
        case EventType.STEP_STARTED | EventType.APPROVAL_REQUESTED, _:
            return "cancelled"
    return "failed"
