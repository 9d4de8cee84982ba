"""Reading a model: never for ever, and in handfuls.

A token a time costs a frame, a row and a repaint each. Taking whatever came within `pace`
seconds costs the reader nothing they could notice and everything else a tenth.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from .errors import ModelTimeout
from .turn import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds a model may take: to begin, between two chunks, and in all.

    After `slow` seconds without a first chunk, whoever waits is told so.
    """

    slow: float = 10
    first: float = 60
    between: float = 30
    whole: float = 600


async def handfuls(
    chunks: AsyncIterator[Chunk], deadlines: Deadlines, pace: float = 0
) -> AsyncGenerator[list[Chunk], None]:
    """The chunks as they come; an empty handful says that the first is slow to come."""
    ready: list[Chunk] = []
    wake = asyncio.Event()
    pump = asyncio.create_task(_pump(chunks, ready, wake))
    end = asyncio.get_running_loop().time() + deadlines.whole
    patience, waited = deadlines.first, 0.0
    try:
        if deadlines.slow < patience and not await _is_woken(wake, deadlines.slow):
            waited = deadlines.slow
            yield []
        while not pump.done() or ready:
            await _until(wake, patience, end, waited)
            wake.clear()
            taken, ready[:] = ready[:], []
            if taken:
                yield taken
                patience, waited = deadlines.between, 0.0
                await _gather(pump, pace)
        pump.result()
    finally:
        pump.cancel()
        await asyncio.wait([pump])


async def _pump(chunks: AsyncIterator[Chunk], ready: list[Chunk], wake: asyncio.Event) -> None:
    try:
        async for chunk in chunks:
            _add(chunk, ready)
            wake.set()
    finally:
        wake.set()
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()


def _add(chunk: Chunk, ready: list[Chunk]) -> None:
    """Words that follow words are one chunk: whatever reads it has less to do."""
    said, before = _words(chunk), _words(ready[-1]) if ready else None
    if said is None or before is None:
        ready.append(chunk)
    else:
        choice = {"index": 0, "delta": {"content": before + said}, "finish_reason": None}
        ready[-1] = {"id": chunk["id"], "choices": [choice]}


def _words(chunk: Chunk) -> str | None:
    """The words of a chunk that holds nothing else."""
    if len(chunk) != 2 or "id" not in chunk or len(choices := chunk.get("choices", ())) != 1:
        return None
    match choices[0]:
        case {"index": 0, "delta": {"content": str(said), **others}, "finish_reason": None}:
            return None if others else said
    return None


async def _gather(pump: asyncio.Task[None], pace: float) -> None:
    """Let the next handful collect, but no longer than the stream lasts."""
    if pace and not pump.done():
        await asyncio.wait([pump], timeout=pace)


async def _until(wake: asyncio.Event, patience: float, end: float, waited: float) -> None:
    left = end - asyncio.get_running_loop().time()
    if not await _is_woken(wake, max(0, min(patience - waited, left))):
        raise ModelTimeout(_late(patience, left))


async def _is_woken(wake: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return False
    return True


def _late(patience: float, left: float) -> str:
    if left < patience:
        return "The model did not finish within its time."
    return f"The model sent nothing for {patience:g} seconds."
