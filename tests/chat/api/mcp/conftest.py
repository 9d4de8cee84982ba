"""A server that programs reach over HTTP, keys for them, and clients of both generations."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import uvicorn
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from agents.access import api_keys
from agents.db import database
from tests.bench.processes import free_port

# With the handshake that most clients still make, and without.
ERAS = ("legacy", "auto")
SCOPES = ("ask", "read", "approve")


@pytest.fixture
async def address(run_executor, settings):
    """The URL of the MCP server, in this process and on this test's event loop."""
    from project.asgi import application

    port = free_port()
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ORIGINS = [f"http://127.0.0.1:{port}"]
    config = uvicorn.Config(application, port=port, lifespan="off", log_level="warning")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    for _ in range(1_000):
        if server.started:
            break
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{port}/mcp"
    server.should_exit = True
    server.force_exit = True
    await serving


@pytest.fixture
def make_key(person):
    async def make(*scopes, user=None, **columns):
        scopes = scopes or SCOPES
        return await database.run(api_keys.create, user or person, "Editor", scopes, **columns)

    return make


@pytest.fixture
def connect(address, make_key):
    """Connect FastMCP's client with a new key."""

    @asynccontextmanager
    async def open_client(era="auto", *scopes, user=None, **options):
        _key, token = await make_key(*scopes, user=user)
        transport = StreamableHttpTransport(
            address, headers={"Authorization": f"Bearer {token}"}
        )
        async with Client(transport, mode=era, **options) as client:
            yield client

    return open_client
