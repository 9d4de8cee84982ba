"""A tool of an MCP server."""

from collections.abc import Mapping
from typing import Any, Protocol

from agents.engine.tool import Effect, ToolInput, ToolResult

from .configuration.config import ServerConfig
from .definition import ToolDefinition, digest, tool_name

GRACE_SECONDS = 2.0


class ToolServer(Protocol):
    """What calls a server's tools: a connection, or one of several by person or chat."""

    config: ServerConfig

    async def call(
        self, tool: str, arguments: Mapping[str, Any], seconds: float | None, pinned: str
    ) -> ToolResult: ...


class McpTool:
    """An accepted tool of a server; if it changes there, it isn't called any more."""

    is_untrusted = True

    def __init__(
        self,
        server: ToolServer,
        definition: ToolDefinition,
        *,
        is_trusted: bool = False,
        name: str = "",
        description: str = "",
        effect: Effect | None = None,
        needs_approval: bool | None = None,
        timeout: float | None = None,
    ) -> None:
        believed = definition.with_trust(is_trusted)
        asks = believed.needs_approval if needs_approval is None else needs_approval
        self.name = name or tool_name(server.config.name, definition.name)
        self.description = description or definition.description
        self.parameters = dict(definition.parameters)
        self.effect = effect or believed.effect
        self.needs_approval = asks
        self.seconds = timeout or server.config.call_timeout
        self.timeout = self.seconds + GRACE_SECONDS  # after our own limit, which says more
        self._server = server
        self._definition = definition
        self._digest = digest(definition)
        self.reaches = f"{server.config.name} {self._digest}"

    async def execute(self, input: ToolInput, /) -> ToolResult:
        """Wait for the server if it is connecting, compare the definition, and call."""
        if isinstance(input, str):  # a bare string is the first argument
            names = list(self.parameters.get("properties") or ["input"])
            input = {names[0]: input}
        return await self._server.call(self._definition.name, input, self.seconds, self._digest)
