"""The connections of this process, in each of its event loops."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache
from typing import cast

from django.conf import settings
from django.db import DatabaseError

from agents.db import database
from agents.models import McpServer
from agents.models.secret import UnreadableSecret
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress
from agents.tools.mcp.configuration.config import ServerConfig
from agents.tools.mcp.connection.connection_lifecycle import ConnectionLifecycle
from agents.tools.mcp.connection.health import Health
from agents.tools.mcp.connection.pool import ConnectionPool, IsolatedServer
from agents.tools.mcp.process.isolation import Isolation, person_scope
from agents.tools.mcp.sign_in import SignIn
from agents.tools.mcp.tool import ToolServer

from . import sign_ins
from .configuration import server_config
from .health import save_health

logger = logging.getLogger(__name__)
REFRESH_SECONDS = 0.3
DISCONNECT_SECONDS = 15.0


def disconnect(name: str, user: int | None = None) -> list[Future[None]]:
    """Close this process's connections to a changed or deleted server, or one user's, soon."""
    scope = None if user is None else person_scope(user)
    return in_all_loops(lambda loop_state: loop_state.connections.drop(name, scope))


def in_all_loops(
    action: Callable[["_LoopConnections"], Coroutine[None, None, None]],
) -> list[Future[None]]:
    return [
        asyncio.run_coroutine_threadsafe(action(loop_state), loop)
        for loop, loop_state in list(_by_loop.items())
        if loop.is_running()
    ]


def wait_for_all(closings: list[Future[None]]) -> None:
    for closing in closings:
        with suppress(TimeoutError):
            closing.result(DISCONNECT_SECONDS)


def running_instances() -> dict[str, int]:
    """Return how many instances of each server run in this process."""
    total = Counter[str]()
    for loop_state in list(_by_loop.values()):
        total.update(loop_state.connections.instances())
    return dict(total)


async def shut_down() -> None:
    """Disconnect all servers of this event loop, and save that."""
    if loop_state := _by_loop.pop(asyncio.get_running_loop(), None):
        await loop_state.close()


class _LoopConnections:
    """The connections of one event loop, and the task that saves their status."""

    def __init__(self) -> None:
        self.connections = ConnectionPool(egress=egress(), listener=self._on_change)
        self._news: dict[str, Health] = {}
        self._wake = asyncio.Event()
        self._is_over = False
        self._writing = asyncio.create_task(self._write())

    async def connect(self, server: McpServer) -> ToolServer | None:
        """Return what calls its tools; None if its secrets are unreadable.

        A shared server starts connecting; one that is connected lists its tools again.
        """
        try:
            config = server_config(server)
        except UnreadableSecret as error:
            self._enqueue(server.name, Health(state="failed", error=str(error)))
            return None
        if server.sign_in:
            return self._signed_in_server(server, config)
        if server.isolation != McpServer.Isolation.SHARED:
            isolation = cast(Isolation, server.isolation)
            return IsolatedServer(self.connections, config, isolation, server.max_instances)
        connection = await self.connections.ensure(config)
        await connection.refresh(REFRESH_SECONDS)
        return connection

    def _signed_in_server(self, server: McpServer, config: ServerConfig) -> IsolatedServer:
        is_personal = server.sign_in == McpServer.SignIn.USER

        async def find_sign_in(user_id: str) -> SignIn | None:
            if not is_personal:
                return await database.run(sign_ins.find, server, None)
            return await database.run(sign_ins.find, server, int(user_id)) if user_id else None

        return IsolatedServer(
            self.connections,
            config,
            "person" if is_personal else cast(Isolation, server.isolation),
            server.max_instances,
            find_sign_in,
            sign_ins.page_url(server) if is_personal else "",
        )

    def _on_change(self, connection: ConnectionLifecycle) -> None:
        name = connection.config.name
        health = connection.health
        best = self.connections.state(name)
        # An instance that starts or stops says nothing about a server that works for others.
        is_news = health.state in {"ready", "failed"}
        self._enqueue(name, health if is_news or best is None else best)

    def _enqueue(self, name: str, health: Health) -> None:
        self._news[name] = health
        self._wake.set()

    async def _write(self) -> None:
        while self._news or not self._is_over:
            await self._wake.wait()
            self._wake.clear()
            while self._news:
                name, health = self._news.popitem()
                try:
                    await database.run(save_health, name, health)
                except DatabaseError:
                    # The next change is saved again; runs don't wait for this.
                    logger.exception("Can't save the state of the MCP server %s.", name)

    async def close(self) -> None:
        await self.connections.close()
        self._is_over = True
        self._wake.set()
        await self._writing


_by_loop: dict[asyncio.AbstractEventLoop, _LoopConnections] = {}


def loop_connections() -> _LoopConnections:
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = _LoopConnections()
    return _by_loop[loop]


def egress() -> Egress:
    """Return the egress policy; raise ValueError for invalid exemptions."""
    return _cached_egress(tuple(settings.EGRESS_ALLOW))


@lru_cache(maxsize=1)
def _cached_egress(allowed: tuple[str, ...]) -> Egress:
    return Egress(allow=AllowList.read(allowed))
