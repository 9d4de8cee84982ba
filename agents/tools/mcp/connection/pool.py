"""The connections of one event loop: each server once, or once per person or chat."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from agents.engine import call_context
from agents.engine.call_context import CallContext, Question, QuestionUnavailable
from agents.engine.sentences import Sentence as _
from agents.engine.tool import ToolResult
from agents.tools.egress import Egress

from ..configuration.config import ServerConfig
from ..errors import ServerUnavailable
from ..process.isolation import Isolation, scope_of, scoped_config
from ..sign_in import SignIn, SignInRequired
from .connection import Connection
from .connection_lifecycle import ConnectionListener
from .health import Health

# Shorter than that of a shared server, because there can be many.
INSTANCE_IDLE_SECONDS = 300.0
MAX_INSTANCES = 10
FindSignIn = Callable[[str], Awaitable[SignIn | None]]  # by user


class ConnectionPool:
    """Servers by name and scope, each connected once for all runs."""

    def __init__(
        self, *, egress: Egress | None = None, listener: ConnectionListener | None = None
    ) -> None:
        self._egress = egress
        self._listener = listener
        self._open: dict[tuple[str, str], Connection] = {}

    async def ensure(
        self, config: ServerConfig, scope: str = "", max_instances: int = MAX_INSTANCES
    ) -> Connection:
        """Return the connection to this server, possibly still connecting.

        A changed configuration gets a new one. Raises ServerUnavailable if too many instances
        of the server are busy.
        """
        key = (config.name, scope)
        old = self._open.get(key)
        if old is None or old.config != config:
            retired = [old] if old else []
            if scope and not old:
                retired = self._make_room(config.name, max_instances)
            idle = {"idle": INSTANCE_IDLE_SECONDS} if scope else {}
            self._open[key] = Connection(
                config, egress=self._egress, listener=self._listener, **idle
            )
            for connection in retired:
                await connection.close()
        connection = self._open[key]
        connection.start()
        return connection

    @asynccontextmanager
    async def instance(
        self, config: ServerConfig, scope: str, max_instances: int
    ) -> AsyncIterator[Connection]:
        """Hold an instance for one call, so that it isn't stopped for another one."""
        connection = await self.ensure(scoped_config(config, scope), scope, max_instances)
        with connection.held():
            yield connection

    def state(self, name: str) -> Health | None:
        """Return the status of a server: of a working instance, if there is one."""
        instances = (self._open[key].health for key in self._open if key[0] == name)
        return max(instances, key=lambda health: health.state == "ready", default=None)

    def instances(self) -> dict[str, int]:
        """Return how many instances of each server run now."""
        running = Counter(
            name
            for (name, _scope), connection in self._open.items()
            if connection.health.state != "stopped"
        )
        return dict(running)

    async def drop(self, name: str, scope: str | None = None) -> None:
        """Disconnect a server that was disabled or deleted: all its instances, or one."""
        await self._drop(
            [key for key in self._open if key[0] == name and scope in {None, key[1]}]
        )

    async def drop_scopes(self, scopes: Collection[str]) -> None:
        """Disconnect the instances of deleted people or chats."""
        await self._drop([key for key in self._open if key[1] in scopes])

    async def _drop(self, keys: list[tuple[str, str]]) -> None:
        dropped = [self._open.pop(key) for key in keys]
        await asyncio.gather(*(connection.close() for connection in dropped))

    async def close(self) -> None:
        await asyncio.gather(*(self.drop(name) for name in {name for name, _ in self._open}))

    def _make_room(self, name: str, max_instances: int) -> list[Connection]:
        """Remove stopped instances and, at the limit, the one unused for longest."""
        scopes = [key for key in self._open if key[0] == name and key[1]]
        stopped = [key for key in scopes if self._open[key].health.state == "stopped"]
        running = [key for key in scopes if key not in stopped]
        excess = running if len(running) >= max_instances else []
        unused = sorted(
            (key for key in excess if not self._open[key].is_busy),
            key=lambda key: self._open[key].used_at,
        )
        if excess and not unused:
            raise ServerUnavailable(
                _(
                    "%(name)s is busy: all %(most)s instances are in use. Try again in a "
                    "moment.",
                    name=name,
                    most=max_instances,
                )
            )
        return [self._open.pop(key) for key in (*stopped, *unused[:1])]


class IsolatedServer:
    """A server that each person or chat has an instance of, started by their first call."""

    def __init__(
        self,
        pool: ConnectionPool,
        config: ServerConfig,
        isolation: Isolation,
        max_instances: int = MAX_INSTANCES,
        find_sign_in: FindSignIn | None = None,
        sign_in_page: str = "",  # empty if users can't sign in themselves
    ) -> None:
        self._find_sign_in = find_sign_in
        self._sign_in_page = sign_in_page
        self.config = config
        self._pool = pool
        self._isolation = isolation
        self._max_instances = max_instances

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        pinned: str = "",
    ) -> ToolResult:
        """Call a tool of the instance that belongs to the current call."""
        context = call_context.current()
        try:
            scope = scope_of(self._isolation, context, self.config.name)
            config = self.config
            if self._find_sign_in is not None:
                sign_in = await self._signed_in(context, self._find_sign_in)
                config = replace(config, sign_in=sign_in)
            async with self._pool.instance(config, scope, self._max_instances) as connection:
                return await connection.call(tool, arguments, seconds, pinned)
        except ServerUnavailable as error:
            return ToolResult(error=str(error))

    async def _signed_in(self, context: CallContext, find: FindSignIn) -> SignIn:
        """Return the user's sign-in, and ask for it if it isn't there.

        Raises SignInRequired if there is nobody to ask, or they didn't sign in.
        """
        name = self.config.name
        sign_in = await find(context.user_id)
        if sign_in is None and self._sign_in_page:
            message = _("Sign in to %(name)s to use its tools.", name=name)
            with suppress(QuestionUnavailable):
                await context.ask(
                    Question(source=name, message=message, url=self._sign_in_page)
                )
                sign_in = await find(context.user_id)
        if sign_in is None:
            raise SignInRequired(name, is_shared=not self._sign_in_page)
        return sign_in
