"""The tools of one run: which of them still work, and how they are used."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from .errors import ToolNotFoundError
from .fallback import FallbackResult, FallbackStrategy
from .tool import Tool, ToolRegistry, ToolResult
from .turn import ToolCall

Outcomes = Mapping[str, asyncio.Task[FallbackResult]]


class Toolbox:
    """A tool that failed for good is out of order: neither offered nor tried again."""

    def __init__(self, registry: ToolRegistry, fallback: FallbackStrategy) -> None:
        self.registry = registry
        self.fallback = fallback
        self.out_of_order: set[str] = set()
        self.is_degraded = False

    def offered(self) -> list[Tool]:
        names = self.registry.list_tools()
        return [self.registry.get(name) for name in names if name not in self.out_of_order]

    @asynccontextmanager
    async def side_by_side(self, calls: Sequence[ToolCall]) -> AsyncIterator[Outcomes]:
        """Calls under way, by id: those that only read. Others begin once they are reported."""
        begun = {call.id: asyncio.create_task(self.use(call)) for call in self._reading(calls)}
        try:
            yield begun
        finally:
            for task in begun.values():
                task.cancel()
            if begun:
                await asyncio.wait(begun.values())

    def _reading(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        if len(calls) < 2:
            return []
        known = [call for call in calls if self.registry.has(call.name)]
        return [c for c in known if getattr(self.registry.get(c.name), "effect", "") == "read"]

    async def use(self, call: ToolCall) -> FallbackResult:
        """Make the call; whatever is wrong with it comes back as a result to read."""
        outcome = await self._use(call)
        if outcome.degraded:
            self.out_of_order.add(call.name)
            self.is_degraded = True
        elif not outcome.result.is_error:
            self.is_degraded = False
        return outcome

    async def _use(self, call: ToolCall) -> FallbackResult:
        if call.name in self.out_of_order:
            return _refused(f"{call.name} is out of order. Answer without it.")
        try:
            tool, input = self.registry.get(call.name), call.input
        except ToolNotFoundError as error:
            return _refused(str(error))
        except ValueError as error:
            return _refused(f"The arguments are not a JSON object: {error}")
        return await self.fallback.execute_with_fallback(tool, input)


def _refused(error: str) -> FallbackResult:
    return FallbackResult(result=ToolResult(error=error, mendable=True))
