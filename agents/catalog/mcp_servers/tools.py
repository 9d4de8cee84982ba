"""Tools of MCP servers, for agents: those that are accepted and reachable."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import cast

from agents.db import database
from agents.engine.tool import Effect, Tool
from agents.models import McpServer, ToolRegistration
from agents.models.types import AnyUser
from agents.tools.mcp.connection.connection import Connection
from agents.tools.mcp.errors import changed_message, gone_message
from agents.tools.mcp.process.isolation import person_scope, scoped_config
from agents.tools.mcp.tool import McpTool, ToolServer

from .configuration import permitted_config
from .connections import egress, loop_connections
from .definitions import accepted_definition


async def load_tools(rows: Iterable[ToolRegistration]) -> list[Tool]:
    """Return accepted MCP tools; changed ones are withheld.

    It doesn't wait for servers: the first call waits for one that is connecting.
    """
    offered = [(row, row.server) for row in rows if row.server and is_offered(row)]
    servers = list({server for _, server in offered})
    connected = await asyncio.gather(*map(loop_connections().connect, servers))
    connections = dict(zip(servers, connected, strict=True))
    return [
        _build_tool(row, connection)
        for row, server in offered
        if (connection := connections[server])
    ]


def withheld_reasons(rows: Iterable[ToolRegistration]) -> dict[str, str]:
    """Return why tools can't be used, by name: removed from their server, or changed there."""
    reasons = {}
    for row in rows:
        if row.server is None or row.definition is None:
            continue
        tool = accepted_definition(row).name
        if row.is_gone:
            reasons[row.name] = gone_message(row.server.name, tool)
        elif row.pending is not None:
            reasons[row.name] = changed_message(row.server.name, tool)
    return reasons


def is_offered(row: ToolRegistration) -> bool:
    accepted = row.definition is not None and row.pending is None and not row.is_gone
    return bool(accepted and row.enabled and row.server and row.server.enabled)


def _build_tool(row: ToolRegistration, server: ToolServer) -> McpTool:
    approvals: dict[str, bool] = {row.ApprovalMode.ALWAYS: True, row.ApprovalMode.NEVER: False}
    return McpTool(
        server,
        accepted_definition(row),
        is_trusted=bool(row.server and row.server.trusts_annotations),
        name=row.name,
        description=row.description,
        effect=cast(Effect | None, row.effect or None),
        needs_approval=approvals.get(row.approval),
        timeout=row.timeout,
    )


@asynccontextmanager
async def open_tool(row: ToolRegistration, user: AnyUser) -> AsyncIterator[Tool]:
    """Open a tool for one call, on its own connection.

    Raises PermissionDenied if this user can't use its server.
    """
    if row.server is None:
        raise ValueError(f"The tool {row.name} belongs to no MCP server.")
    config = await database.run(permitted_config, row.server, user)
    if row.server.isolation != McpServer.Isolation.SHARED:  # without a chat, by person
        config = scoped_config(config, person_scope(user.pk))
    connection = Connection(config, egress=egress())
    try:
        yield _build_tool(row, connection)
    finally:
        await connection.close()
