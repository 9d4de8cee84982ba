"""Work that may take a while is done beside the event loop, and what takes none at once."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

SMALL = 4_000


async def aside(
    size: int, work: Callable[P, Result], *given: P.args, **named: P.kwargs
) -> Result:
    """In a thread, unless it is about so few characters that the way there would be longer."""
    if size <= SMALL:
        return work(*given, **named)
    return await asyncio.to_thread(work, *given, **named)
