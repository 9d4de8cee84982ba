"""Tool calls through a cache: saved results, joined calls, and eviction after a change."""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from agents.engine import call_context
from agents.engine.concurrency.joined_calls import JoinedCalls
from agents.engine.result_cache import CacheMark, ResultStore
from agents.engine.tool import Tool, ToolInput

from ..capability import Capability, ToolHandler
from .tool_fallback import FallbackResult

IN_FLIGHT: JoinedCalls[FallbackResult] = JoinedCalls()


class ResultCache(Capability):
    """Calls of tools that have a store find saved results and save new ones, or evict them."""

    def __init__(self, stores: Mapping[str, ResultStore]) -> None:
        """`stores` are those of the tools, by name."""
        self.stores = stores

    async def tool_call(
        self, tool: Tool, input: ToolInput, next: ToolHandler
    ) -> FallbackResult:
        """Return a saved result, or make the call and save what it returns."""
        store = self.stores.get(tool.name)
        if store is None:
            return await next(tool, input)
        if not store.is_read:
            # Before and after: the process may die in between, and a failed call may count.
            await store.evict()
            try:
                return await next(tool, input)
            finally:
                await store.evict()
        key = await store.key(input)
        if not key:
            return await next(tool, input)
        flight = await IN_FLIGHT.wait(key)
        if flight is not None and flight.result is not None:
            mark = flight.result.cached or CacheMark(at=datetime.now(UTC), key=key)
            ended = time.monotonic()
            return replace(flight.result, attempts=0, cached=mark.joined(), ended=ended)
        if flight is not None:
            return await next(tool, input)
        async with IN_FLIGHT.lead(key) as flight:
            saved = await store.find(key)
            if saved is not None:
                outcome = FallbackResult(result=saved.result, attempts=0, cached=saved.mark)
            else:
                began = time.monotonic()
                outcome = await next(tool, input)
                if not outcome.result.is_error and not call_context.current().is_personal:
                    await store.save(key, input, outcome.result, time.monotonic() - began)
            # What a person or a model said during the call is no answer to another one, and
            # an error may be about this run's user: a limit that was reached, a missing right.
            result = outcome.result
            is_personal = call_context.current().is_personal or result.is_private
            flight.is_alone = is_personal or result.is_error
            flight.result = None if flight.is_alone else outcome
        return outcome
