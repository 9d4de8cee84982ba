"""What becomes of a call that is under way when its run is stopped."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .fallback import FallbackResult
from .tool import Effect

LAST_WORD = 1.0
STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """It was cancelled, nobody knows, or it ended all the same and this is its result."""

    status: Literal["cancelled", "unknown", "done", "failed"]
    result: str = ""

    @property
    def finished_anyway(self) -> bool:
        return self.status in {"done", "failed"}


class Stopped(asyncio.CancelledError):
    """A cancellation that knows what became of the calls it met, by their steps."""

    def __init__(self, *why: object, fates: Mapping[int, Fate]) -> None:
        super().__init__(*why)
        self.fates = fates


async def result_of(
    call: asyncio.Task[FallbackResult], step: int, effect: Effect
) -> FallbackResult:
    """What comes of a call; a stop meanwhile ends the call first, and raises its fate."""
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError as stop:
        if call.cancelled():
            raise
        call.cancel(STOP)
        await asyncio.wait([call], timeout=LAST_WORD)
        raise Stopped(*stop.args, fates={step: _fate(call, effect)}) from None


def _fate(call: asyncio.Task[FallbackResult], effect: Effect) -> Fate:
    if call.done() and not call.cancelled() and call.exception() is None:
        result = call.result().result
        return Fate(status="failed" if result.is_error else "done", result=result.text)
    # What only reads leaves nothing behind; of anything else nobody knows how far it came.
    return Fate(status="cancelled" if effect == "read" else "unknown")
