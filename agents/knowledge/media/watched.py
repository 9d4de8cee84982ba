"""Runs something async from a thread that has to report progress meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.5


def run_watched(work: Coroutine[Any, Any, T], report: Callable[[], None]) -> T:
    """Run in an event loop of its own; if `report` raises, the work is canceled.

    The loop has its own thread, because `report` uses the database.
    """
    outcome: list[T] = []
    problem: list[BaseException] = []
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        outcome.append(await work)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # raised again in the waiting thread
            problem.append(error)

    # In this context: it says who pays.
    thread = threading.Thread(target=copy_context().run, args=[run], name="media", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            report()
    except BaseException:
        for loop, task in started:
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)
        thread.join(5)
        raise
    if problem:
        raise problem[0]
    return outcome[0]
