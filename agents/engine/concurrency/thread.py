"""Runs long work in a thread and short work inline."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

MAX_INLINE_CHARS = 4_000


async def run_in_thread_if_large(
    size: int, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
) -> Result:
    """Run the work in a thread, or inline if it is too small to be worth the switch."""
    if size <= MAX_INLINE_CHARS:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
