"""Reads a model's stream with timeouts and in batches.

One token at a time costs a frame, a row and a repaint each. A batch per `batch_seconds`
costs a tenth, and readers don't notice.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from math import inf

from agents.engine.errors import (
    AdapterFailed,
    AgentConnectionError,
    AgentError,
    ModelTimeout,
    ModelTooSlow,
)
from agents.engine.turn.assembly import Chunk, TextChunk, has_content

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_SECONDS = 5.0
RAISE_FIRST = (
    "It may be overloaded or still reading a long prompt. Try again, choose another model, or "
    "ask an administrator to raise “Timeout for the first word” (Settings, Models)."
)
RAISE_BETWEEN = (
    "It may be overloaded. Try again, choose another model, or ask an administrator to raise "
    "“Timeout between words” (Settings, Models)."
)
RAISE_WHOLE = (
    "Try again, choose another model, or ask an administrator to raise “Timeout for a whole "
    "answer” (Settings, Models)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Timeouts in seconds: until a reply begins, between two chunks, and in total.

    After `slow` seconds without a beginning, a notice is sent. A server that says it is at work
    gets the time until the reply begins once more.
    """

    slow: float = 10
    first: float = 60
    between: float = 30
    whole: float = 600


def open_stream(
    stream: Callable[..., AsyncIterator[Chunk]], **request: object
) -> AsyncIterator[Chunk]:
    """Start a model request; any adapter exception becomes an AgentError."""
    try:
        return stream(**request)
    except Exception as error:
        raise adapter_error(error) from error


def adapter_error(error: BaseException) -> AgentError:
    """Convert an adapter's exception to an AgentError.

    Its message is only logged: it may contain a key and wouldn't help a user.
    """
    if isinstance(error, AgentError):
        return error
    logger.error("A model adapter failed.", exc_info=error)
    name = type(error).__name__
    if isinstance(error, TimeoutError):
        return ModelTimeout(f"The model adapter timed out ({name}).")
    if isinstance(error, ConnectionError):
        return AgentConnectionError(f"The model adapter lost its connection ({name}).")
    return AdapterFailed(f"The model adapter failed ({name}).")


async def batched(
    chunks: AsyncIterator[Chunk], deadlines: Deadlines, batch_seconds: float = 0
) -> AsyncGenerator[list[Chunk], None]:
    """Yield chunks in batches; an empty batch means that the first chunk is slow."""
    ready: list[Chunk] = []
    wake = asyncio.Event()
    pump = asyncio.create_task(_pump(chunks, ready, wake))
    timer = _StreamTimer(wake, deadlines)
    has_begun = False
    try:
        while not pump.done() or ready:
            await wake.wait()
            wake.clear()
            batch = ready[:]
            ready[:] = []
            if batch:
                yield batch
                has_begun = has_begun or any(map(has_content, batch))
                timer.postpone(has_begun)
                await _wait_for_batch(pump, batch_seconds)
            elif timer.check_deadlines():
                yield []
        pump.result()
    finally:
        timer.stop()
        pump.cancel()
        # An adapter that ignores cancellation must not keep a run from ending.
        await asyncio.wait([pump], timeout=CLOSE_TIMEOUT_SECONDS)
        if pump.done() and not pump.cancelled():
            pump.exception()  # was handled, or came too late to matter


async def read_all(chunks: AsyncIterator[Chunk], seconds: float) -> list[Chunk]:
    """Return all chunks of a short reply, without a task and timers of their own."""
    ready: list[Chunk] = []
    try:
        async with asyncio.timeout(seconds):
            await _pump(chunks, ready, asyncio.Event())
    except TimeoutError as error:
        raise ModelTimeout(
            "The model didn't finish before its timeout.", advice=RAISE_FIRST
        ) from error
    return ready


class _StreamTimer:
    """Wakes the reader of a model that sends nothing.

    A batch only moves the deadline; checking it when the timer fires costs less than resetting
    the timer each time.
    """

    def __init__(self, wake: asyncio.Event, deadlines: Deadlines) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self._between = deadlines.between
        now = self._loop.time()
        self._patience = deadlines.first
        self._slow = now + (deadlines.slow if deadlines.slow < deadlines.first else inf)
        self._due = now + deadlines.first
        self._end = now + deadlines.whole
        self._is_alive = False
        self._advice = RAISE_FIRST
        self._timer: asyncio.TimerHandle | None = None
        self._schedule()

    def postpone(self, has_begun: bool) -> None:
        self._is_alive = True
        if has_begun:
            self._slow = inf
            self._patience = self._between
            self._advice = RAISE_BETWEEN
        self._due = self._loop.time() + self._patience
        if self._timer is None:
            self._schedule()

    def check_deadlines(self) -> bool:
        """Whether the first chunk is slow; raise ModelTimeout if it is overdue."""
        now = self._loop.time()
        if now >= self._end:
            failure = ModelTooSlow if self._is_alive else ModelTimeout
            raise failure("The model didn't finish before its timeout.", advice=RAISE_WHOLE)
        if now >= self._due:
            message = f"The model sent nothing for {self._patience:g} s."
            raise ModelTimeout(message, advice=self._advice)
        is_slow = now >= self._slow
        if is_slow:
            self._slow = inf
            self._schedule()
        return is_slow

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        check_at = min(self._slow, self._due, self._end)
        self._timer = self._loop.call_at(check_at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._loop.time() >= min(self._slow, self._due, self._end):
            self._wake.set()
        else:
            self._schedule()


async def _pump(chunks: AsyncIterator[Chunk], ready: list[Chunk], wake: asyncio.Event) -> None:
    try:
        async for chunk in chunks:
            _append_chunk(chunk, ready)
            wake.set()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # An adapter may raise this too; only our own cancellation is a stop.
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            raise
        raise adapter_error(error) from error
    finally:
        wake.set()
        await _close_stream(chunks)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _close_stream(chunks: AsyncIterator[Chunk]) -> None:
    """Close the stream; what was received stays valid if that fails."""
    if (close := getattr(chunks, "aclose", None)) is None:
        return
    try:
        await close()
    except Exception as error:
        logger.warning("A model adapter couldn't be closed.", exc_info=error)


def _append_chunk(chunk: Chunk, ready: list[Chunk]) -> None:
    """Merge consecutive text chunks, so that readers have less to do."""
    text = _chunk_text(chunk) if ready else None
    before = _chunk_text(ready[-1]) if text is not None else None
    if text is None or before is None:
        ready.append(chunk)
    else:
        ready[-1] = TextChunk(before + text)


def _chunk_text(chunk: Chunk) -> str | None:
    """Return the text of a chunk that contains nothing else."""
    if isinstance(chunk, TextChunk):
        return chunk.text
    if len(chunk) != 2 or "id" not in chunk or len(choices := chunk.get("choices", ())) != 1:
        return None
    delta = choices[0].get("delta")
    if (
        not delta
        or len(delta) != 1
        or choices[0].get("finish_reason")
        or _choice_index(choices[0])
    ):
        return None
    text = delta.get("content")
    return text if isinstance(text, str) else None


def _choice_index(choice: Chunk) -> int:
    return choice.get("index") or 0


async def _wait_for_batch(pump: asyncio.Task[None], batch_seconds: float) -> None:
    """Wait for the next batch, but no longer than the stream lasts."""
    if batch_seconds and not pump.done():
        await asyncio.wait([pump], timeout=batch_seconds)
