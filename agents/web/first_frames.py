"""What pages are shown that have just come: few at a time, and once for several that are alike.

After a restart, or when a process died, all of them come at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

MAX_CONCURRENT = 2
# More than these find somebody who has time for them sooner elsewhere, or a little later.
MAX_WAITING = 500
TIMEOUT_SECONDS = 30.0  # seconds

Greeting = TypeVar("Greeting")


class TooManyWaiting(Exception):
    """So many pages came at once that this one is to come again later."""


class _Queue:
    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(MAX_CONCURRENT)
        self.waiting = 0
        self.unbegun: dict[Hashable, asyncio.Task[Any]] = {}
        self.tasks: set[asyncio.Task[Any]] = set()


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()


def _queue() -> _Queue:
    return _lines.setdefault(asyncio.get_running_loop(), _Queue())


def is_full() -> bool:
    """Whether whoever comes now had better go elsewhere."""
    return _queue().waiting >= MAX_WAITING


@asynccontextmanager
async def acquire_slot() -> AsyncIterator[None]:
    """Wait for one's turn to be shown everything; raises TooMany where it does not come."""
    line = _queue()
    if is_full():
        raise TooManyWaiting
    line.waiting += 1
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await line.turns.acquire()
    except TimeoutError:
        raise TooManyWaiting from None
    finally:
        line.waiting -= 1
    try:
        yield
    finally:
        line.turns.release()


async def run_shared(key: Hashable, greet: Callable[[], Awaitable[Greeting]]) -> Greeting:
    """What this makes, in its turn: once for all who want the same before it is begun.

    Whoever comes later has it made anew: it says how things were when it was begun, and only
    those who listened by then are told what has changed since.
    """
    line = _queue()
    if (task := line.unbegun.get(key)) is None:
        task = line.unbegun[key] = asyncio.create_task(_run_in_slot(line, key, greet))
        line.tasks.add(task)
        task.add_done_callback(line.tasks.discard)
        # All who wanted it may have gone.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def _run_in_slot(
    line: _Queue, key: Hashable, greet: Callable[[], Awaitable[Greeting]]
) -> Any:
    try:
        async with acquire_slot():
            _mark_started(line, key)
            return await greet()
    except TooManyWaiting:
        _mark_started(line, key)
        raise


def _mark_started(line: _Queue, key: Hashable) -> None:
    """Nobody joins it any more; the next one may be waiting under the same key already."""
    if line.unbegun.get(key) is asyncio.current_task():
        del line.unbegun[key]
