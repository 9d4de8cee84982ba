"""Tool calls through a cache: saved results, joined calls, and eviction after a change."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

from agents.engine import call_context
from agents.engine.concurrency.joined_calls import JoinedCalls
from agents.engine.result_cache import CacheMark, ResultCache
from agents.engine.tool import ToolInput

from .tool_fallback import FallbackResult

Call = Callable[[], Awaitable[FallbackResult]]

IN_FLIGHT: JoinedCalls[FallbackResult] = JoinedCalls()


async def run_cached(cache: ResultCache, input: ToolInput, call: Call) -> FallbackResult:
    """Return a saved result, or make the call and save what it returns."""
    if not cache.is_read:
        return await _run_and_evict(cache, call)
    key = await cache.key(input)
    if not key:
        return await call()
    flight = await IN_FLIGHT.wait(key)
    if flight is not None and flight.result is not None:
        mark = flight.result.cached or CacheMark(at=datetime.now(UTC), key=key)
        ended = time.monotonic()
        return replace(flight.result, attempts=0, cached=mark.joined(), ended=ended)
    if flight is not None:
        return await call()
    async with IN_FLIGHT.lead(key) as flight:
        outcome = await _find_or_call(cache, key, input, call)
        # What a person or a model said during the call is no answer to another one, and an
        # error may be about this run's user: a limit that was reached, a missing right.
        result = outcome.result
        is_personal = call_context.current().is_personal or result.is_private
        flight.is_alone = is_personal or result.is_error
        flight.result = None if flight.is_alone else outcome
    return outcome


async def _find_or_call(
    cache: ResultCache, key: str, input: ToolInput, call: Call
) -> FallbackResult:
    if (found := await cache.find(key)) is not None:
        return FallbackResult(result=found.result, attempts=0, cached=found.mark)
    began = time.monotonic()
    outcome = await call()
    if not outcome.result.is_error and not call_context.current().is_personal:
        await cache.save(key, input, outcome.result, time.monotonic() - began)
    return outcome


async def _run_and_evict(cache: ResultCache, call: Call) -> FallbackResult:
    """Evict before and after: the process may die in between, and a failed call may count."""
    await cache.evict()
    try:
        return await call()
    finally:
        await cache.evict()
