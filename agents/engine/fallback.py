"""What to do when a tool fails: try again, and in the end do without."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime

from .tool import Tool, ToolInput, ToolResult

TOOL_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackResult:
    """`degraded` says that the tool is of no use now; its last error is in `result`."""

    result: ToolResult
    degraded: bool = False
    attempts: int = 1
    ended: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def output(self) -> str:
        return self.result.output

    @property
    def error(self) -> str | None:
        return self.result.error


class FallbackStrategy:
    def __init__(self, max_retries: int = 2, *, pause: float = 0.1) -> None:
        self.max_retries = max_retries
        self.pause = pause

    async def execute_with_fallback(self, tool: Tool, input: ToolInput) -> FallbackResult:
        attempts = 1 + self._retries(tool)
        for attempt in range(1, attempts + 1):
            result, again = await self._attempt(tool, input)
            if not result.is_error or result.mendable:
                return FallbackResult(result=result, attempts=attempt)
            if not again or attempt == attempts:
                break
            await asyncio.sleep(self.pause * 2**attempt * random.uniform(0.5, 1))
        return FallbackResult(result=result, degraded=True, attempts=attempt)

    def _retries(self, tool: Tool) -> int:
        """Never again by ourselves where a repetition could do harm."""
        at_most_once = getattr(tool, "effect", "idempotent") == "at_most_once"
        return 0 if at_most_once else self.max_retries

    async def _attempt(self, tool: Tool, input: ToolInput) -> tuple[ToolResult, bool]:
        """The result, and whether another attempt could do better; a hung tool could not."""
        timeout = getattr(tool, "timeout", None) or TOOL_TIMEOUT
        try:
            async with asyncio.timeout(timeout) as limit:
                return _result(tool, await tool.execute(input)), True
        except Exception as error:
            if limit.expired():
                late = f"{tool.name} did not answer within {timeout:g} seconds."
                return ToolResult(error=late), False
            failure = f"{tool.name} failed: {type(error).__name__}: {error}"
            return ToolResult(error=failure), True


def _result(tool: Tool, value: object) -> ToolResult:
    """What the tool gave; a text alone is taken as its output."""
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(value)
    kind = type(value).__name__
    return ToolResult(error=f"{tool.name} is broken: it gave {kind}, not a ToolResult.")
