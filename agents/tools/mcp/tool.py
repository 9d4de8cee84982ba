"""MCP servers as tools: the connections of one event loop, and calls through them."""

import asyncio
from collections.abc import Mapping
from typing import Any

from agents.engine.tool import Effect, ToolInput, ToolResult
from agents.tools.egress import Egress

from .config import ServerConfig
from .connection import Connection, ConnectionListener, Health
from .definition import ToolDefinition, digest, tool_name

GRACE_SECONDS = 2.0


class ConnectionPool:
    """Servers by name, each connected once for all runs."""

    def __init__(
        self, *, egress: Egress | None = None, listener: ConnectionListener | None = None
    ) -> None:
        self._egress = egress
        self._listener = listener
        self._open: dict[str, Connection] = {}

    async def ensure(self, config: ServerConfig) -> Connection:
        """Return the connection to this server, possibly still connecting.

        A changed configuration gets a new one.
        """
        old = self._open.get(config.name)
        if old is None or old.config != config:
            new = Connection(config, egress=self._egress, listener=self._listener)
            self._open[config.name] = new
            if old is not None:
                await old.close()
        connection = self._open[config.name]
        connection.start()
        return connection

    def state(self, name: str) -> Health | None:
        connection = self._open.get(name)
        return connection.health if connection else None

    async def drop(self, name: str) -> None:
        """Disconnect a server that was disabled or deleted."""
        if connection := self._open.pop(name, None):
            await connection.close()

    async def close(self) -> None:
        await asyncio.gather(*(self.drop(name) for name in list(self._open)))


class McpTool:
    """An accepted tool of a server; if it changes there, it isn't called any more."""

    def __init__(
        self,
        connection: Connection,
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
        self.name = name or tool_name(connection.config.name, definition.name)
        self.description = description or definition.description
        self.parameters = dict(definition.parameters)
        self.effect = effect or believed.effect
        self.needs_approval = asks
        self.seconds = timeout or connection.config.call_timeout
        self.timeout = self.seconds + GRACE_SECONDS  # after our own limit, which says more
        self._connection = connection
        self._definition = definition
        self._digest = digest(definition)
        self.reaches = f"{connection.config.name} {self._digest}"

    async def execute(self, input: ToolInput, /) -> ToolResult:
        """Wait for the server if it is connecting, compare the definition, and call."""
        return await self._connection.call(
            self._definition.name, self._arguments(input), self.seconds, self._digest
        )

    def _arguments(self, input: ToolInput) -> Mapping[str, Any]:
        """Return the arguments by name; a bare string is the first one."""
        if not isinstance(input, str):
            return input
        names = list(self.parameters.get("properties") or ["input"])
        return {names[0]: input}
