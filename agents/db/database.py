"""The database thread: runs queries from the event loop."""

from asyncio import get_running_loop, wrap_future
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from enum import IntEnum
from functools import partial
from threading import Lock, get_ident
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import AsyncToSync, SyncToAsync, sync_to_async
from django.conf import settings
from django.db import connections
from django.utils import translation

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

# A less urgent call is made after this many others.
MAX_SKIPS = 8


class Priority(IntEnum):
    FIRST = 0  # a user's action that waits for a response
    USUAL = 1
    LATER = 2  # initial content of a new page


class PriorityExecutor(Executor):
    """One thread that makes the most urgent call next, oldest first."""

    def __init__(self, name: str = "database") -> None:
        self._thread = ThreadPoolExecutor(1, name, self._start)
        self._thread_id = 0
        self._lock = Lock()
        self._waiting: dict[Priority, deque[_Call]] = {
            priority: deque() for priority in Priority
        }
        self._passed = dict.fromkeys(Priority, 0)

    def submit(
        self,
        fn: Callable[Arguments, Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Future[Result]:
        return self.put(Priority.USUAL, fn, *args, **kwargs)

    def put(
        self,
        priority: Priority,
        fn: Callable[Arguments, Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Future[Result]:
        future: Future[Result] = Future()
        with self._lock:
            self._waiting[priority].append((future, fn, args, kwargs))
        # Not this call, but the most urgent one when the thread gets to it.
        self._thread.submit(self._run_next)
        return future

    def is_current(self) -> bool:
        """Whether this code runs on the thread."""
        return get_ident() == self._thread_id

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for queue in self._waiting.values():
                for future, *_ in tuple(queue):
                    future.cancel()
        self._thread.shutdown(wait)

    def _start(self) -> None:
        self._thread_id = get_ident()

    def _run_next(self) -> None:
        with self._lock:
            waiting = [priority for priority, queue in self._waiting.items() if queue]
            overdue = [
                priority for priority in waiting[1:] if self._passed[priority] >= MAX_SKIPS
            ]
            chosen = max(
                overdue, key=lambda priority: self._passed[priority], default=waiting[0]
            )
            for priority in waiting:
                self._passed[priority] = 0 if priority is chosen else self._passed[priority] + 1
            future, fn, args, kwargs = self._waiting[chosen].popleft()
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


_Call = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]

# The thread for all queries outside of requests.
EXECUTOR = PriorityExecutor()
# asgiref only submits to it and shuts it down.
SyncToAsync.single_thread_executor = EXECUTOR  # type: ignore[assignment]


async def run(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run a function on the database thread and return its result.

    Like Channels' database_sync_to_async at less than half the cost; of what is active in
    Django, only the language is passed on.
    """
    return await _submit(Priority.USUAL, partial(function, *args, **kwargs))


async def run_urgent(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run a function ahead of everything queued: a user is waiting."""
    return await _submit(Priority.FIRST, partial(function, *args, **kwargs))


async def run_deferred(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run a function after everything queued: a page has just connected."""
    return await _submit(Priority.LATER, partial(function, *args, **kwargs))


def detached_context() -> Context:
    """Return a copy of the context for a task that outlives the request it begins in.

    A request may have a thread of its own, which ends with it.
    """
    context = copy_context()
    no_thread: Any = None
    context.run(SyncToAsync.thread_sensitive_context.set, no_thread)
    return context


def _submit(priority: Priority, function: Callable[[], Result]) -> Awaitable[Result]:
    loop = get_running_loop()
    if (
        # That of a request or a command.
        SyncToAsync.thread_sensitive_context.get(None) is not None
        or getattr(AsyncToSync.executors, "current", None) is not None
        or loop in AsyncToSync.loop_thread_executors
    ):
        return sync_to_async(partial(_run_with_connection, function))()
    language = translation.get_language()
    call = partial(copy_context().run, _run_with_connection, function, language)
    return wrap_future(EXECUTOR.put(priority, call), loop=loop)


def _run_with_connection(function: Callable[[], Result], language: str | None = None) -> Result:
    """Run the function, closing lost connections before and after.

    A language needs a context of the call's own, because it isn't restored.
    """
    if language not in {None, settings.LANGUAGE_CODE}:
        translation.activate(str(language))
    _close_lost_connections()
    try:
        return function()
    finally:
        _close_lost_connections()


def _close_lost_connections() -> None:
    """Close connections that can't be used any more, unless a transaction is open."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
