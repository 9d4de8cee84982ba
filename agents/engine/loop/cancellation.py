"""Records what happens to calls that are running when their run is stopped."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from .tool_fallback import FallbackResult

CANCEL_GRACE_SECONDS = 1.0
STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """A stopped call: cancelled, never started, unknown, or finished anyway with a result."""

    status: Literal["cancelled", "unstarted", "unknown", "done", "failed"]
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


async def cancel_call(task: asyncio.Task[FallbackResult], step: int, effect: str) -> None:
    """Cancel a call because its run is stopped, and record its outcome."""
    if task.cancelled():
        return
    task.cancel(STOP)
    await asyncio.wait([task], timeout=CANCEL_GRACE_SECONDS)
    if (outcomes := _outcomes.get()) is not None:
        outcomes[step] = _call_outcome(task, effect)


def _call_outcome(task: asyncio.Task[FallbackResult], effect: str) -> CallOutcome:
    if task.done() and not task.cancelled() and task.exception() is None:
        result = task.result().result
        return CallOutcome(status="failed" if result.is_error else "done", result=result.text)
    # A read-only call leaves nothing behind; how far any other call got is unknown.
    return CallOutcome(status="cancelled" if effect == "read" else "unknown")
