"""Asks a server for its tools and saves what it answers."""

import logging

from agents.db import database
from agents.models import McpServer
from agents.models.types import AnyUser
from agents.tools.mcp.configuration.config import ServerConfig
from agents.tools.mcp.connection.connection import Connection
from agents.tools.mcp.connection.health import Health
from agents.tools.mcp.errors import ServerUnavailable
from agents.tools.mcp.sign_in import SignInRequired

from .configuration import permitted_config, require_valid
from .connections import egress
from .definitions import SyncResult
from .health import save_health

logger = logging.getLogger(__name__)


async def sync(server: McpServer, user: AnyUser) -> SyncResult:
    """Connect once and save what was found; raise PermissionDenied."""
    try:
        config = await database.run(permitted_config, server, user)
        health = await _probe(config)
    except SignInRequired as error:
        # It says nothing about the server, so it isn't saved.
        return SyncResult(health=Health(state="failed", error=str(error)))
    return await database.run(save_health, server.name, health)


async def probe(config: ServerConfig, user: AnyUser) -> Health:
    """Connect once to an unsaved server; raise PermissionDenied."""
    await database.run(require_valid, config, user)
    return await _probe(config)


async def _probe(config: ServerConfig) -> Health:
    connection = Connection(config, egress=egress())
    try:
        await connection.ready(again=False)
        await connection.settle()
    except ServerUnavailable:
        logger.info("Can't use the MCP server %s.", config.name)
    finally:
        health = connection.health
        await connection.close()
    return health
