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

from ..sentences import Sentence as _

logger = logging.getLogger(__name__)

TEXT_FIELDS = {"id", "choices"}  # of a chunk that has text and nothing else

CLOSE_TIMEOUT_SECONDS = 5.0
RAISE_FIRST = _(
    "It may be overloaded or still reading a long prompt. Try again, choose another model, "
    "or ask an administrator to raise “Timeout for the first token” (Settings, Models)."
)
RAISE_BETWEEN = _(
    "It may be overloaded. Try again, choose another model, or ask an administrator to "
    "raise “Timeout between tokens” (Settings, Models)."
)
RAISE_WHOLE = _(
    "Try again, choose another model, or ask an administrator to raise "
    "“Timeout for a whole response” (Settings, Models)."
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
        return ModelTimeout(_("The model adapter timed out (%(name)s).", name=name))
    if isinstance(error, ConnectionError):
        return AgentConnectionError(
            _("The model adapter lost its connection (%(name)s).", name=name)
        )
    return AdapterFailed(_("The model adapter failed (%(name)s).", name=name))


async def batched(
    chunks: AsyncIterator[Chunk], deadlines: Deadlines, batch_seconds: float = 0
) -> AsyncGenerator[list[Chunk], None]:
    """Yield chunks in batches; an empty batch means that the first chunk is slow."""
    inbox = _Inbox()
    pump = asyncio.create_task(_pump(chunks, inbox))
    timer = _StreamTimer(inbox, deadlines)
    has_begun = False
    try:
        while not pump.done() or inbox.chunks:
            if batch := await inbox.take():
                yield batch
                has_begun = has_begun or any(map(has_content, batch))
                timer.postpone(has_begun)
                if batch_seconds and not pump.done():  # no longer than the stream lasts
                    await asyncio.wait([pump], timeout=batch_seconds)
            elif timer.check_deadlines():
                yield []
        pump.result()
    finally:
        timer.stop()
        if not pump.done():
            pump.cancel()
            # An adapter that ignores cancellation must not keep a run from ending.
            await asyncio.wait([pump], timeout=CLOSE_TIMEOUT_SECONDS)
        if pump.done() and not pump.cancelled():
            pump.exception()  # was handled, or came too late to matter


async def read_all(chunks: AsyncIterator[Chunk], seconds: float) -> list[Chunk]:
    """Return all chunks of a short reply, without a task and timers of their own."""
    inbox = _Inbox()
    try:
        async with asyncio.timeout(seconds):
            await _pump(chunks, inbox)
    except TimeoutError as error:
        raise ModelTimeout(
            _("The model didn't finish before its timeout."), advice=RAISE_FIRST
        ) from error
    return inbox.chunks


class _Inbox:
    """What has been received, and the reader that waits for it.

    An `asyncio.Event` does the same for several readers, and takes longer.
    """

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self._loop = asyncio.get_running_loop()
        self._is_awake = False
        self._waiter: asyncio.Future[None] | None = None

    def put(self, chunk: Chunk) -> None:
        """Add a chunk; consecutive text is merged, so that the reader has less to do."""
        text = _chunk_text(chunk) if self.chunks else None
        last_text = _chunk_text(self.chunks[-1]) if text is not None else None
        if text is None or last_text is None:
            self.chunks.append(chunk)
        else:
            self.chunks[-1] = TextChunk(last_text + text)
        self.wake()

    def wake(self) -> None:
        self._is_awake = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> list[Chunk]:
        """Wait until something wakes the reader; return what has been received by then."""
        if not self._is_awake:
            self._waiter = self._loop.create_future()
            await self._waiter
        self._is_awake = False
        batch = self.chunks
        self.chunks = []
        return batch


class _StreamTimer:
    """Wakes the reader of a model that sends nothing.

    A batch only moves the deadline; checking it when the timer fires costs less than resetting
    the timer each time.
    """

    def __init__(self, inbox: _Inbox, deadlines: Deadlines) -> None:
        self._loop = asyncio.get_running_loop()
        self._inbox = inbox
        self._between = deadlines.between
        start = self._loop.time()
        self._patience = deadlines.first
        self._slow = start + (deadlines.slow if deadlines.slow < deadlines.first else inf)
        self._due = start + deadlines.first
        self._end = start + deadlines.whole
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
        current_time = self._loop.time()
        if current_time >= self._end:
            failure = ModelTooSlow if self._is_alive else ModelTimeout
            raise failure(_("The model didn't finish before its timeout."), advice=RAISE_WHOLE)
        if current_time >= self._due:
            message = _(
                "The model sent nothing for %(seconds)s s.", seconds=f"{self._patience:g}"
            )
            raise ModelTimeout(message, advice=self._advice)
        is_slow = current_time >= self._slow
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
            self._inbox.wake()
        else:
            self._schedule()


async def _pump(chunks: AsyncIterator[Chunk], inbox: _Inbox) -> None:
    try:
        async for chunk in chunks:
            inbox.put(chunk)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # An adapter may raise this too; only our own cancellation is a stop.
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            raise
        raise adapter_error(error) from error
    finally:
        inbox.wake()
        if (close := getattr(chunks, "aclose", None)) is not None:
            try:
                await close()
            except Exception as error:  # what was received stays valid
                logger.warning("A model adapter couldn't be closed.", exc_info=error)


def _is_being_cancelled() -> bool:
    # Not where an exception is handled: its traceback would keep the task, which keeps it.
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _chunk_text(chunk: Chunk) -> str | None:
    """Return the text of a chunk that contains nothing else."""
    if isinstance(chunk, TextChunk):
        return chunk.text
    if not chunk.keys() <= TEXT_FIELDS:
        return None
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    if not isinstance(choice, dict) or choice.get("finish_reason") or choice.get("index"):
        return None
    delta = choice.get("delta")
    if not isinstance(delta, dict) or len(delta) != 1:
        return None
    text = delta.get("content")
    return text if isinstance(text, str) else None
