"""The way from an event loop to the thread that has the connection to the database."""

from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from asgiref.sync import AsyncToSync, SyncToAsync
from channels.db import database_sync_to_async
from django.db import close_old_connections

Answer = TypeVar("Answer")


async def ask(question: Callable[..., Answer], *subject: Any) -> Answer:
    """What this function finds, asked in the one thread in which all others ask, too.

    As with Channels' database_sync_to_async, at less than half the cost; but a language that
    is chosen is not taken along, and whoever needs one chooses it there.
    """
    loop = get_running_loop()
    if _is_sent_elsewhere(loop):
        return await database_sync_to_async(question)(*subject)
    visit, thread = copy_context().run, SyncToAsync.single_thread_executor
    return await loop.run_in_executor(thread, visit, _asked, question, *subject)


def _asked(question: Callable[..., Answer], *subject: Any) -> Answer:
    """Before and after, connections that were lost are let go of."""
    close_old_connections()
    try:
        return question(*subject)
    finally:
        close_old_connections()


def _is_sent_elsewhere(loop: AbstractEventLoop) -> bool:
    """Whether another thread is the one to ask: that of a request, or of a command."""
    return (
        SyncToAsync.thread_sensitive_context.get(None) is not None
        or getattr(AsyncToSync.executors, "current", None) is not None
        or loop in AsyncToSync.loop_thread_executors
    )
