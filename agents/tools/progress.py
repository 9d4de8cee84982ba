"""Long calls that have a deadline of their own."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

from agents.engine import call_context

PROGRESS_SECONDS = 3.0

T = TypeVar("T")


async def wait_with_progress(work: Awaitable[T]) -> T:
    """Wait, and show that the call is alive, so that its timeout doesn't end it."""
    task = asyncio.ensure_future(work)
    seconds = 0.0
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=PROGRESS_SECONDS)
            seconds += PROGRESS_SECONDS
            if not task.done():
                call_context.current().report_progress(seconds)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
