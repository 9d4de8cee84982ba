"""Work that may take a while is done beside the event loop, and what takes none at once."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

MAX_INLINE_CHARS = 4_000


async def run_in_thread_if_large(
    size: int, work: Callable[P, Result], *given: P.args, **named: P.kwargs
) -> Result:
    """In a thread, unless it is about so few characters that the way there would be longer."""
    if size <= MAX_INLINE_CHARS:
        return work(*given, **named)
    return await asyncio.to_thread(work, *given, **named)
