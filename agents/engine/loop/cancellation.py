"""Stops a run, and records what happens to calls that are running then."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from agents.engine.events import Event

from ..sentences import Sentence as _
from .lifecycle_events import finish_event
from .run_state import RunState
from .termination import StopReason
from .tool_calls.tool_fallback import FallbackResult

CANCEL_GRACE_SECONDS = 1.0
STOP = "stop"
CallStatus = Literal["cancelled", "unstarted", "unknown", "done", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """A stopped call: cancelled, never started, unknown, or finished anyway with a result."""

    status: CallStatus
    result: str = ""

    @property
    def finished_anyway(self) -> bool:
        return self.status in {"done", "failed"}


_outcomes: ContextVar[dict[int, CallOutcome] | None] = ContextVar("fates", default=None)


@contextmanager
def record_outcomes() -> Iterator[dict[int, CallOutcome]]:
    """Collect the outcomes of calls that a stop interrupts in this block, by step."""
    outcomes: dict[int, CallOutcome] = {}
    token = _outcomes.set(outcomes)
    try:
        yield outcomes
    finally:
        _outcomes.reset(token)


async def until_aborted(
    source: AsyncGenerator[Event, None], run_state: RunState, abort: asyncio.Event
) -> AsyncGenerator[Event, None]:
    """Yield a run's events until the abort event is set; then end the run as cancelled."""
    waiting: asyncio.Task[Any] | None = None

    def interrupt(_watcher: asyncio.Task[Any]) -> None:
        if waiting is not None and abort.is_set():
            waiting.cancel()

    watcher = asyncio.create_task(abort.wait())
    watcher.add_done_callback(interrupt)
    try:
        async with aclosing(source) as events:
            while not abort.is_set():
                # Only while the engine works: what the reader does is no business of ours.
                task = waiting = asyncio.current_task()
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
                except asyncio.CancelledError:
                    if task is None or not abort.is_set() or task.uncancel():
                        raise
                    break
                finally:
                    waiting = None
                yield event
        if not run_state.is_over:
            yield finish_event(
                run_state, StopReason.CANCELLED, detail=_("The run was aborted.")
            )
    finally:
        watcher.cancel()


async def cancel_call(task: asyncio.Task[FallbackResult], step: int, effect: str) -> None:
    """Cancel a call because its run is stopped, and record its outcome."""
    if task.cancelled():
        return
    task.cancel(STOP)
    await asyncio.wait([task], timeout=CANCEL_GRACE_SECONDS)
    if (outcomes := _outcomes.get()) is None:
        return
    if task.done() and not task.cancelled() and task.exception() is None:
        result = task.result().result
        status: CallStatus = "failed" if result.is_error else "done"
        outcomes[step] = CallOutcome(status=status, result=result.text)
    else:
        # A read-only call leaves nothing behind; how far any other call got is unknown.
        outcomes[step] = CallOutcome(status="cancelled" if effect == "read" else "unknown")
