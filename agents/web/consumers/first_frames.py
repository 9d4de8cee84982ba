"""Initial frames of new pages: a few at a time, shared by identical pages.

After a restart or a crash, all pages connect at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

MAX_CONCURRENT = 2
# Beyond this, another process or a later attempt is faster.
MAX_WAITING = 500
TIMEOUT_SECONDS = 30.0  # seconds

Result = TypeVar("Result")


class TooManyWaiting(Exception):
    """Raised when too many pages are waiting; this one should retry later."""


class _Queue:
    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(MAX_CONCURRENT)
        self.waiting = 0
        self.unbegun: dict[Hashable, asyncio.Task[Any]] = {}
        self.tasks: set[asyncio.Task[Any]] = set()


_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()


def _queue() -> _Queue:
    return _queues.setdefault(asyncio.get_running_loop(), _Queue())


def is_full() -> bool:
    """Whether new pages should go to another process."""
    return _queue().waiting >= MAX_WAITING


@asynccontextmanager
async def acquire_slot() -> AsyncIterator[None]:
    """Wait for a slot to render initial frames; raise TooManyWaiting if there is none."""
    queue = _queue()
    if is_full():
        raise TooManyWaiting
    queue.waiting += 1
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await queue.slots.acquire()
    except TimeoutError:
        raise TooManyWaiting from None
    finally:
        queue.waiting -= 1
    try:
        yield
    finally:
        queue.slots.release()


async def run_shared(key: Hashable, render: Callable[[], Awaitable[Result]]) -> Result:
    """Run `greet` in its turn, once for all who ask before it starts.

    Later callers start another one: the result shows the state at its start, and only those
    already subscribed are notified of later changes.
    """
    queue = _queue()
    if (task := queue.unbegun.get(key)) is None:
        task = queue.unbegun[key] = asyncio.create_task(_run_in_slot(queue, key, render))
        queue.tasks.add(task)
        task.add_done_callback(queue.tasks.discard)
        # All callers may have left.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def _run_in_slot(
    queue: _Queue, key: Hashable, render: Callable[[], Awaitable[Result]]
) -> Any:
    try:
        async with acquire_slot():
            _mark_started(queue, key)
            return await render()
    except TooManyWaiting:
        _mark_started(queue, key)
        raise


def _mark_started(queue: _Queue, key: Hashable) -> None:
    """Close it to further callers; the next one may already wait under the same key."""
    if queue.unbegun.get(key) is asyncio.current_task():
        del queue.unbegun[key]
