"""What pages are shown that have just come: few at a time, and once for several that are alike.

After a restart, or when a process died, all of them come at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

AT_ONCE = 2
# More than these find somebody who has time for them sooner elsewhere, or a little later.
MOST_WAITING = 500
WITHIN = 30.0  # seconds

Greeting = TypeVar("Greeting")


class TooMany(Exception):
    """So many pages came at once that this one is to come again later."""


class _Line:
    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)
        self.waiting = 0
        self.unbegun: dict[Hashable, asyncio.Task[Any]] = {}
        self.tasks: set[asyncio.Task[Any]] = set()


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()


def _line() -> _Line:
    return _lines.setdefault(asyncio.get_running_loop(), _Line())


def is_full() -> bool:
    """Whether whoever comes now had better go elsewhere."""
    return _line().waiting >= MOST_WAITING


@asynccontextmanager
async def turn() -> AsyncIterator[None]:
    """Wait for one's turn to be shown everything; raises TooMany where it does not come."""
    line = _line()
    if is_full():
        raise TooMany
    line.waiting += 1
    try:
        async with asyncio.timeout(WITHIN):
            await line.turns.acquire()
    except TimeoutError:
        raise TooMany from None
    finally:
        line.waiting -= 1
    try:
        yield
    finally:
        line.turns.release()


async def shared(key: Hashable, greet: Callable[[], Awaitable[Greeting]]) -> Greeting:
    """What this makes, in its turn: once for all who want the same before it is begun.

    Whoever comes later has it made anew: it says how things were when it was begun, and only
    those who listened by then are told what has changed since.
    """
    line = _line()
    if (task := line.unbegun.get(key)) is None:
        task = line.unbegun[key] = asyncio.create_task(_made(line, key, greet))
        line.tasks.add(task)
        task.add_done_callback(line.tasks.discard)
        # All who wanted it may have gone.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def _made(line: _Line, key: Hashable, greet: Callable[[], Awaitable[Greeting]]) -> Any:
    try:
        async with turn():
            _begin(line, key)
            return await greet()
    except TooMany:
        _begin(line, key)
        raise


def _begin(line: _Line, key: Hashable) -> None:
    """Nobody joins it any more; the next one may be waiting under the same key already."""
    if line.unbegun.get(key) is asyncio.current_task():
        del line.unbegun[key]
