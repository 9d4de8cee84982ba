"""Work that searches and indexes do in threads of their own, away from chats."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from threading import Event
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connections

from .retrieval import vector_index

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

# A search can take 0.3 s and the first one loads the model: too long for the database thread.
SEARCHES = ThreadPoolExecutor(2, thread_name_prefix="search")
FIRST_SECONDS = 3.0
PAUSE_SECONDS = 20.0


async def run(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run a search in a thread of its own, with its own database connection."""
    call = partial(copy_context().run, _with_connection, partial(function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(SEARCHES, call)


async def keep_up_periodically() -> None:
    """Embed passages that have no vector yet, and rebuild the index for a new model."""
    stopping = Event()
    try:
        await asyncio.sleep(FIRST_SECONDS)
        while True:
            await asyncio.to_thread(_keep_up, stopping)
            await asyncio.sleep(PAUSE_SECONDS)
    finally:
        stopping.set()


def _keep_up(stopping: Event) -> None:
    try:
        vector_index.keep_up(stopping.is_set)
    except Exception as error:
        # While the process exits, no thread can start the model.
        if not (isinstance(error, RuntimeError) and "shutdown" in str(error)):
            logger.exception("Can't update the embedding index.")
    finally:
        connections.close_all()


def _with_connection(function: Callable[[], Result]) -> Result:
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()
