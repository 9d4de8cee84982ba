"""Queries one configured PostgreSQL or MySQL server, in a child process of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from agents.engine import sentences
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import unpack
from agents.engine.tool import ToolResult
from agents.tools import sandbox
from agents.tools.addresses import is_host
from agents.tools.egress.policy import resolve_host

from . import server_worker
from .dialects import DatabaseKind
from .guarded_query import GuardedQuery
from .query_tool import QueryTool
from .schema import Allowed, Schema

# It signs in to a server, so it has the network; it can read its code, and write nothing.
SERVER_QUERY = sandbox.Worker(
    name="database server query",
    program=server_worker.__file__,
    has_network=True,
    memory_bytes=server_worker.MEMORY_BYTES,
    file_bytes=2**18,  # for a certificate in memory
    modules=(sentences,),
)
PORTS = {DatabaseKind.POSTGRESQL: 5432, DatabaseKind.MYSQL: 3306}
CHECK_SECONDS = 10.0
# Where clouds give their machines keys; no database is there.
CLOUD_METADATA = frozenset(
    map(ip_address, ("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254"))
)


class ConnectionFailed(Exception):
    """Raised when a server can't be reached, with a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a server is, and who signs in."""

    kind: DatabaseKind
    host: str
    database: str
    user: str
    password: str = ""
    port: int | None = None
    tls: str = "require"
    ca: str = ""

    async def request(self) -> dict[str, Any]:
        """Return the connection's part of a request, with a checked address."""
        port = self.port or PORTS[self.kind]
        if self.host.startswith("/") and "," in self.host:
            raise ConnectionFailed(_("%(host)s isn't a valid host name.", host=repr(self.host)))
        return {
            "host": self.host,
            "address": "" if self.host.startswith("/") else await self._resolve(port),
            "port": port,
            "database": self.database,
            "user": self.user,
            "password": self.password,
            "tls": "off" if self.host.startswith("/") else self.tls,
            "ca": self.ca,
        }

    async def _resolve(self, port: int) -> str:
        """Return the address to use. An administrator named it, so it can be a private one."""
        if not is_host(self.host):
            raise ConnectionFailed(_("%(host)s isn't a valid host name.", host=repr(self.host)))
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                addresses = await resolve_host(self.host, port)
        except (OSError, TimeoutError, UnicodeError) as error:
            raise ConnectionFailed(
                _("The host %(name)s wasn't found.", name=repr(self.host))
            ) from error
        for address in addresses:
            parsed = ip_address(address)
            ip = getattr(parsed, "ipv4_mapped", None) or parsed
            is_special = ip.is_link_local or ip.is_multicast or ip.is_unspecified
            if is_special or ip in CLOUD_METADATA:
                raise ConnectionFailed(
                    _(
                        "%(host)s is blocked: its address %(address)s is reserved and "
                        "can't be used for a database.",
                        host=self.host,
                        address=address,
                    )
                )
        return addresses[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReport:
    """What a server says about itself and its tables."""

    schema: Schema
    version: str
    powers: tuple[str, ...]  # what the user could do besides reading


async def inspect(address: ServerAddress, seconds: float = CHECK_SECONDS) -> ServerReport:
    """Connect, and return the tables that the user can read; raise ConnectionFailed."""
    request = {"task": "inspect", "kind": address.kind, "seconds": seconds}
    try:
        server = await address.request()
        grant = sandbox.Grant(seconds=seconds + 2)
        worker_reply = await sandbox.run_async(
            SERVER_QUERY, {**request, "server": server}, grant
        )
        reply = worker_reply.json()
    except TimeoutError as error:
        raise ConnectionFailed(
            _("The server didn't respond within %(seconds)s s.", seconds=f"{seconds:g}")
        ) from error
    except sandbox.WorkerFailed as error:
        raise ConnectionFailed(
            _("The connection ended before the server responded.")
        ) from error
    if "error" in reply:
        raise ConnectionFailed(unpack(reply["error"]))
    return ServerReport(
        schema=Schema.from_dict(reply["schema"]),
        version=reply["version"],
        powers=tuple(reply["powers"]),
    )


class ServerDatabaseTool(QueryTool):
    """Read-only SQL over the allowed tables of a server.

    The schema is the one that was saved; `load_schema` reads it again if it is old.
    """

    def __init__(
        self,
        address: ServerAddress,
        schema: Schema,
        allowed: Allowed | None = None,
        *,
        max_rows: int = 100,
        timeout: float = 5,
        introduction: str = "",
        load_schema: Callable[[], Awaitable[Schema]] | None = None,
    ) -> None:
        super().__init__(max_rows=max_rows, timeout=timeout, introduction=introduction)
        self.timeout = timeout + CHECK_SECONDS + 2  # the schema may have to be read first
        self.address = address
        self.load_schema = load_schema
        self._allowed = allowed
        self.schema = schema.limited_to(allowed)
        self.description = self.describe()

    async def refresh(self) -> None:
        if self.load_schema is None:
            return
        load = self.load_schema
        self.load_schema = None
        try:
            self.schema = (await load()).limited_to(self._allowed)
        except ConnectionFailed as error:
            self.trouble = str(error)

    async def ask(self, query: GuardedQuery) -> ToolResult:
        try:
            return await super().ask(query)
        except ConnectionFailed as error:
            return ToolResult(error=str(error))

    def worker(self) -> tuple[sandbox.Worker, sandbox.Grant]:
        grant = sandbox.Grant(seconds=self.seconds, cpu_seconds=self.seconds + 1)
        return SERVER_QUERY, grant

    async def request(self, query: GuardedQuery) -> dict[str, Any]:
        return {
            "task": "query",
            "kind": self.address.kind,
            "server": await self.address.request(),
            "sql": query.sql,
            "max_rows": self.max_rows,
            "seconds": self.seconds,
        }
