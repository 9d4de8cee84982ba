"""Threads for searches, away from chats."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

# A search can take 0.3 s and the first one loads the model: too long for the database thread.
SEARCHES = ThreadPoolExecutor(2, thread_name_prefix="search")


async def run(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run a search in a thread of its own, with its own database connection."""
    call = partial(copy_context().run, _with_connection, partial(function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(SEARCHES, call)


def _with_connection(function: Callable[[], Result]) -> Result:
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()
