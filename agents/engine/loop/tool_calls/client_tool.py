"""Functions of the program that asked: it calls them itself and returns their results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agents.engine.sentences import Sentence as _
from agents.engine.tool import Effect, ToolInput, ToolResult

# Why a call waits that only the program can make.
CLIENT: Final = "client"


@dataclass(slots=True, kw_only=True)
class ClientTool:
    """A function of the program that started the run; the run waits for its result."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    effect: Effect = "read"  # nothing happens here
    is_untrusted: bool = True

    async def execute(self, input: ToolInput, /) -> ToolResult:
        return ToolResult(error=_("Only the program that asked can call this function."))
