"""Work that has to be done in time: what is under way at the end of it is ended, and told."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from time import monotonic
from typing import Any

from agents.engine.loop.tool_step import PREVIEW

from ..events import Event, Stamp, Type

LEAVES_OPEN = {
    Type.TASK,
    Type.STEP_STARTED,
    Type.APPROVAL_REQUESTED,
    Type.TOOL_CALL,
    Type.TOOL_RESPONSE,
}
UNSURE = "It may have been done, or not."

Events = AsyncGenerator[Event, None]


class InTime:
    """A course, for so many seconds at most; None is for as long as it takes.

    `past` is what was told of it before it was cut off.
    """

    def __init__(
        self, course: Events, seconds: float | None, emit: Stamp, past: Iterable[Event] = ()
    ) -> None:
        self.course = course
        self.seconds = seconds
        self.emit = emit
        self.is_late = False
        self._open: dict[int, Event] = {}
        for event in past:
            self._note(event)

    @property
    def reason(self) -> str:
        """Why it has no result, for whoever decides whether it should be done again."""
        is_unsure = any(_fate(last) == "unknown" for last in self._open.values())
        return self._sentence(is_unsure)

    def _sentence(self, is_unsure: bool) -> str:
        late = f"It took longer than {self.seconds:g} seconds."
        return f"{late} {UNSURE}" if is_unsure else late

    async def events(self) -> Events:
        end = monotonic() + self.seconds if self.seconds else None
        async with aclosing(self.course):
            while (event := await self._next(end)) is not None:
                self._note(event)
                yield event
        for event in self._given_up() if self.is_late else ():
            yield event

    async def _next(self, end: float | None) -> Event | None:
        left = None if end is None else max(0.0, end - monotonic())
        try:
            async with asyncio.timeout(left) as limit:
                return await anext(self.course)
        except StopAsyncIteration:
            return None
        except TimeoutError:
            if not limit.expired():
                raise
            self.is_late = True
            return None

    def _note(self, event: Event) -> None:
        """Which rows are open, in case that they have to be closed from here."""
        if event.type in LEAVES_OPEN:
            self._open[event.data["step"]] = event
        elif event.type is Type.STEP:
            self._open.pop(event.data["step"], None)

    def _given_up(self) -> Iterator[Event]:
        for begun in reversed(self._open.values()):
            emit = self.emit.under(begun.agent, begun.data["parent"])
            about = {"step": begun.data["step"], "turn": begun.data["turn"]}
            if begun.type is Type.TOOL_CALL:
                yield emit(Type.TOOL_RESPONSE, **self._unanswered(begun), **about)
            kind = begun.data.get("kind", "tool")
            yield emit(Type.STEP, kind=kind, status=_fate(begun), **about)

    def _unanswered(self, begun: Event) -> dict[str, Any]:
        said = f"Error: {self._sentence(_fate(begun) == 'unknown')}"
        call = begun.data
        return {
            "tool_call_id": call["id"],
            "name": call["function"]["name"],
            "content": said,
            "content_preview": said[:PREVIEW],
            "is_error": True,
            "attempts": 1,
            "started": call["started"],
        }


def _fate(last: Event) -> str:
    """What becomes of a row of which this was the last that was told."""
    match last.type, last.data:
        case (Type.TOOL_CALL, {"effect": "at_most_once"}) | (_, {"why": "unknown"}):
            return "unknown"
        case Type.TOOL_RESPONSE, {"is_error": False}:
            return "done"
        case Type.STEP_STARTED | Type.APPROVAL_REQUESTED, _:
            return "cancelled"
    return "failed"
