"""Time limits for steps: what is still running is cancelled and reported."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from time import monotonic

from agents.engine.loop.run_limits import BUDGET
from agents.engine.loop.tool_calls.approval import ELICITATION
from agents.engine.loop.tool_calls.call_events import PREVIEW_CHARS

from ...events import Event, EventFactory, EventType
from ...sentences import Sentence as _
from ...sentences import as_error
from ...tool import uncertain_message

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
        message = _("Timed out after %(seconds)s s.", seconds=f"{self.seconds:g}")
        return uncertain_message(message) if is_unsure else message

    async def events(self) -> Events:
        end = monotonic() + self.seconds if self.seconds else None
        async with aclosing(self.stream):
            while (event := await self._next_event(end)) is not None:
                self._track_open(event)
                end = end and self._shift(event, end)
                yield event
        if self.is_late:
            for started in reversed(self._open.values()):
                data = started.data
                emit = self.emit.child(started.agent, data["parent"])
                status = _final_status(started)
                if started.type is EventType.TOOL_CALL:
                    message = as_error(self._timeout_message(status == "unknown"))
                    yield emit(
                        EventType.TOOL_RESPONSE,
                        tool_call_id=data["id"],
                        name=data["function"]["name"],
                        content=message,
                        content_preview=message[:PREVIEW_CHARS],
                        is_error=True,
                        attempts=1,
                        started=data["started"],
                        step=data["step"],
                        turn=data["turn"],
                    )
                yield emit(
                    EventType.STEP,
                    kind=data.get("kind", "tool"),
                    status=status,
                    step=data["step"],
                    turn=data["turn"],
                )

    def _shift(self, event: Event, end: float) -> float:
        """Return the time limit without the time a running call waits for the user."""
        if event.data.get("why") != ELICITATION:
            return end
        was_waiting = bool(self._questions)
        current_time = monotonic()
        if event.type is EventType.APPROVAL_REQUESTED:
            self._questions.add(event.data["id"])
            self._since = self._since if was_waiting else current_time
        else:
            self._questions.discard(event.data["id"])
        has_ended = was_waiting and not self._questions
        return end + current_time - self._since if has_ended else end

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
