"""MCP servers: rows, connections, and accepted tool definitions.

Connections belong to an event loop and are made when a run needs them. What they report is
saved in rows for the console: a server's status and its current tools.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.db import database
from agents.engine.tool import Effect, Tool
from agents.models import McpServer, ServerSample, ToolRegistration
from agents.models.secret import UnreadableSecret
from agents.models.types import AnyUser
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress
from agents.tools.mcp import sandbox as mcp_sandbox
from agents.tools.mcp import server_folder
from agents.tools.mcp.config import (
    ConfigProblem,
    Sandbox,
    ServerConfig,
    Transport,
    find_problems,
    read_folders,
)
from agents.tools.mcp.connection import Connection
from agents.tools.mcp.connection_lifecycle import ConnectionLifecycle
from agents.tools.mcp.definition import ToolDefinition, diff, digest, tool_name
from agents.tools.mcp.errors import ServerUnavailable, changed_message, gone_message
from agents.tools.mcp.health import Health
from agents.tools.mcp.isolation import Isolation, person_scope, scoped_config
from agents.tools.mcp.launch import refusals
from agents.tools.mcp.pool import ConnectionPool, IsolatedServer
from agents.tools.mcp.server_folder import FolderSize
from agents.tools.mcp.tool import McpTool, ToolServer

REFRESH_SECONDS = 0.3
DISCONNECT_SECONDS = 15.0
SAMPLE_RETENTION = timedelta(hours=24)
SAMPLE_INTERVAL = timedelta(seconds=50)  # slightly less than a heartbeat
MAX_SAMPLES = 2_000
STDIO_PERMISSION = "agents.use_stdio_servers"

logger = logging.getLogger(__name__)


class DefinitionChanged(Exception):
    """Raised when the definition has changed since it was displayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """The result of a sync: status and changes of tools."""

    health: Health
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


async def load_tools(rows: Iterable[ToolRegistration]) -> list[Tool]:
    """Return accepted MCP tools; changed ones are withheld.

    It doesn't wait for servers: the first call waits for one that is connecting.
    """
    offered = [(row, row.server) for row in rows if row.server and is_offered(row)]
    servers = list({server for _, server in offered})
    connected = await asyncio.gather(*map(_loop_connections().connect, servers))
    found = dict(zip(servers, connected, strict=True))
    return [_build_tool(row, there) for row, server in offered if (there := found[server])]


def withheld_reasons(rows: Iterable[ToolRegistration]) -> dict[str, str]:
    """Return why tools can't be used, by name: removed from their server, or changed there."""
    reasons = {}
    for row in rows:
        if row.server is None or row.definition is None:
            continue
        tool = _accepted_definition(row).name
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
        _accepted_definition(row),
        is_trusted=bool(row.server and row.server.trusts_annotations),
        name=row.name,
        description=row.description,
        effect=cast(Effect | None, row.effect or None),
        needs_approval=approvals.get(row.approval),
        timeout=row.timeout,
    )


def _accepted_definition(row: ToolRegistration) -> ToolDefinition:
    if row.definition is None:
        raise ValueError(f"The tool {row.name} has no definition.")
    return ToolDefinition(**row.definition)


def server_config(server: McpServer) -> ServerConfig:
    return ServerConfig(
        name=server.name,
        transport=cast(Transport, server.transport),
        command=server.command,
        args=tuple(server.args),
        env=server.env.reveal(),
        folders=read_folders(server.folders.splitlines()),
        home=str(home_folder(server.pk)) if server.pk else "",
        sandbox=sandbox_policy(),
        url=server.url,
        headers=server.headers.reveal(),
        connect_timeout=server.connect_timeout,
        call_timeout=server.timeout,
        revision=server.files_deleted_at.isoformat() if server.files_deleted_at else "",
    )


def sandbox_policy() -> Sandbox:
    """Return how programs are isolated here, and what none of them can see."""
    hidden = [settings.DATA_DIR, settings.BASE_DIR / ".env", settings.ENVIRONMENT.trace_file]
    return Sandbox(
        mode=settings.ENVIRONMENT.mcp_sandbox,
        hidden=tuple(str(path.absolute()) for path in hidden if path),
    )


def home_folder(pk: int) -> Path:
    """Return a server's persistent folder, which also holds npx and uvx caches."""
    return settings.DATA_DIR.absolute() / "mcp" / str(pk)


def validate(wanted: ServerConfig, user: AnyUser) -> list[ConfigProblem]:
    """Return all reasons why this user can't save, test or import this server."""
    wrong = find_problems(wanted)
    if wanted.transport != "stdio":
        return wrong
    if not user.has_perm(STDIO_PERMISSION):
        no = _("You don't have permission to set up servers that run programs on this machine.")
        return [_problem("transport", no), *wrong]
    found = [*refusals(wanted), *mcp_sandbox.refusals(wanted)] if wanted.command else []
    return [*wrong, *(_problem(each.field, str(each)) for each in found)]


def _problem(field: str, sentence: str) -> ConfigProblem:
    return ConfigProblem(field=field, beside=sentence, whole=sentence)


async def sync(server: McpServer, user: AnyUser) -> SyncResult:
    """Connect once and save what was found; raise PermissionDenied."""
    wanted = await database.run(_permitted_config, server, user)
    health = await _probe(wanted)
    return await database.run(save_health, server.name, health)


async def probe(wanted: ServerConfig, user: AnyUser) -> Health:
    """Connect once to an unsaved server; raise PermissionDenied."""
    await database.run(_require_valid, wanted, user)
    return await _probe(wanted)


async def _probe(wanted: ServerConfig) -> Health:
    connection = Connection(wanted, egress=egress())
    try:
        await connection.ready(again=False)
    except ServerUnavailable:
        logger.info("Can't use the MCP server %s.", wanted.name)
    finally:
        health = connection.health
        await connection.close()
    return health


@asynccontextmanager
async def open_tool(row: ToolRegistration, user: AnyUser) -> AsyncIterator[Tool]:
    """Open a tool for one call, on its own connection.

    Raises PermissionDenied if this user can't use its server.
    """
    if row.server is None:
        raise ValueError(f"The tool {row.name} belongs to no MCP server.")
    wanted = await database.run(_permitted_config, row.server, user)
    if row.server.isolation != McpServer.Isolation.SHARED:  # without a chat, by person
        wanted = scoped_config(wanted, person_scope(user.pk))
    connection = Connection(wanted, egress=egress())
    try:
        yield _build_tool(row, connection)
    finally:
        await connection.close()


def _permitted_config(server: McpServer, user: AnyUser) -> ServerConfig:
    wanted = server_config(server)
    _require_valid(wanted, user)
    return wanted


def _require_valid(wanted: ServerConfig, user: AnyUser) -> None:
    if wrong := validate(wanted, user):
        raise PermissionDenied(" ".join(map(str, wrong)))


@transaction.atomic
def save_health(name: str, health: Health) -> SyncResult:
    """Save a server's status and, if it is ready, its current tools."""
    server = McpServer.objects.select_for_update().filter(name=name).first()
    if server is None:
        return SyncResult(health=health)
    server.state = health.state
    server.state_since = health.since
    server.last_error = health.error
    server.latency_ms = None if health.latency is None else round(health.latency * 1000, 1)
    server.restarts = health.restarts
    server.save(update_fields=["state", "state_since", "last_error", "latency_ms", "restarts"])
    _record_sample(server)
    return _sync_tools(server, health) if health.state == "ready" else SyncResult(health=health)


def _record_sample(server: McpServer) -> None:
    """Record a sample for the chart; connecting or unused servers have none."""
    if server.state not in {server.State.READY, server.State.FAILED}:
        return
    now, is_up = timezone.now(), server.state == server.State.READY
    samples = ServerSample.objects.filter(server=server)
    last = samples.order_by("-at").first()
    if last and last.is_up == is_up and now - last.at < SAMPLE_INTERVAL:
        return
    samples.create(
        server=server, at=now, is_up=is_up, latency_ms=server.latency_ms if is_up else None
    )
    samples.filter(at__lt=now - SAMPLE_RETENTION).delete()
    if one_too_many := samples.order_by("-at")[MAX_SAMPLES : MAX_SAMPLES + 1].first():
        samples.filter(at__lte=one_too_many.at).delete()


def _sync_tools(server: McpServer, health: Health) -> SyncResult:
    rows = server.tools.exclude(definition=None)
    known = {_accepted_definition(row).name: row for row in rows}
    definitions = {definition.name: definition for definition in health.tools}
    return SyncResult(
        health=health,
        added=tuple(
            n for n in definitions if n not in known and _add_tool(server, definitions[n])
        ),
        changed=tuple(
            n for n in definitions if n in known and _update_tool(known[n], definitions[n])
        ),
        gone=tuple(n for n in known if n not in definitions and _mark_gone(known[n])),
    )


def _add_tool(server: McpServer, definition: ToolDefinition) -> bool:
    """Accept a new tool; agents only get it from an administrator."""
    name = tool_name(server.name, definition.name)
    if ToolRegistration.objects.filter(name=name).exists():
        logger.warning("A tool of the MCP server %s has the name of another tool.", server.name)
        return False
    server.tools.create(
        name=name,
        source=ToolRegistration.Source.MCP,
        definition=definition.as_dict(),
        timeout=server.timeout,
    )
    return True


def _update_tool(row: ToolRegistration, definition: ToolDefinition) -> bool:
    """Withhold a tool that differs from its accepted definition; release it if equal again."""
    is_same = digest(_accepted_definition(row)) == digest(definition)
    pending = None if is_same else definition.as_dict()
    if (row.pending, row.is_gone) != (pending, False):
        row.pending, row.is_gone = pending, False
        row.save(update_fields=["pending", "is_gone"])
    return not is_same


def _mark_gone(row: ToolRegistration) -> bool:
    if not row.is_gone:
        row.is_gone = True
        row.save(update_fields=["is_gone"])
    return True


def pending_changes(row: ToolRegistration) -> list[tuple[str, str, str]]:
    """Return the differences to the accepted definition: (what, before, now)."""
    if not row.pending:
        return []
    return diff(_accepted_definition(row), ToolDefinition(**row.pending))


def pending_digest(row: ToolRegistration) -> str:
    """Return the digest an acceptance is bound to, so that it never covers a later change."""
    return digest(ToolDefinition(**row.pending)) if row.pending else ""


@transaction.atomic
def accept(row: ToolRegistration, seen: str) -> None:
    """Accept a changed definition; raise DefinitionChanged if it isn't the displayed one."""
    row = ToolRegistration.objects.select_for_update().get(pk=row.pk)
    if not row.pending or pending_digest(row) != seen:
        raise DefinitionChanged
    row.definition, row.pending = row.pending, None
    row.save(update_fields=["definition", "pending"])


def measure_files(server: McpServer) -> FolderSize:
    """Return the size of a server's persistent files, of all its instances."""
    return server_folder.measure(home_folder(server.pk))


def clear_files(server: McpServer) -> None:
    """Delete the files of a server that stays; its next call starts with empty folders.

    Other processes start their instances again, because the configuration has changed.
    """
    server.files_deleted_at = timezone.now()
    server.save(update_fields=["files_deleted_at"])
    transaction.on_commit(partial(delete_files, server.pk, server.name))


def delete_files(pk: int, name: str) -> None:
    """Stop a server in this process, then delete its files."""
    _wait_for(disconnect(name))
    server_folder.delete(home_folder(pk))


def instance_folders() -> dict[str, list[Path]]:
    """Return the folders of instances by scope, e.g. `people/12`: one for each server."""
    found: dict[str, list[Path]] = {}
    for kind in ("people", "chats"):
        for group in sorted((settings.DATA_DIR.absolute() / "mcp").glob(f"*.{kind}")):
            for name in server_folder.instance_names(group):
                found.setdefault(f"{kind}/{name}", []).append(group / name)
    return found


def delete_instance_files(*scopes: str) -> None:
    """Stop the instances of these people or chats in this process and delete their files."""
    folders = instance_folders()
    if not (theirs := [scope for scope in scopes if scope in folders]):
        return
    _wait_for(_in_all_loops(lambda room: room.connections.drop_scopes(theirs)))
    for folder in (folder for scope in theirs for folder in folders[scope]):
        server_folder.delete_instance(folder)


def disconnect(name: str) -> list[Future[None]]:
    """Close this process's connections to a changed or deleted server, soon."""
    return _in_all_loops(lambda room: room.connections.drop(name))


def _in_all_loops(
    action: Callable[["_LoopConnections"], Coroutine[None, None, None]],
) -> list[Future[None]]:
    return [
        asyncio.run_coroutine_threadsafe(action(room), loop)
        for loop, room in list(_rooms.items())
        if loop.is_running()
    ]


def _wait_for(closings: list[Future[None]]) -> None:
    for closing in closings:
        with suppress(TimeoutError):
            closing.result(DISCONNECT_SECONDS)


def running_instances() -> dict[str, int]:
    """Return how many instances of each server run in this process."""
    total = Counter[str]()
    for room in list(_rooms.values()):
        total.update(room.connections.instances())
    return dict(total)


async def shut_down() -> None:
    """Disconnect all servers of this event loop, and save that."""
    if room := _rooms.pop(asyncio.get_running_loop(), None):
        await room.close()


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
            wanted = server_config(server)
        except UnreadableSecret as error:
            self._enqueue(server.name, Health(state="failed", error=str(error)))
            return None
        if server.isolation != McpServer.Isolation.SHARED:
            isolation = cast(Isolation, server.isolation)
            return IsolatedServer(self.connections, wanted, isolation, server.max_instances)
        connection = await self.connections.ensure(wanted)
        await connection.refresh(REFRESH_SECONDS)
        return connection

    def _on_change(self, connection: ConnectionLifecycle) -> None:
        name, health = connection.config.name, connection.health
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
            await self._flush()

    async def _flush(self) -> None:
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


_rooms: dict[asyncio.AbstractEventLoop, _LoopConnections] = {}


def _loop_connections() -> _LoopConnections:
    loop = asyncio.get_running_loop()
    if loop not in _rooms:
        _rooms[loop] = _LoopConnections()
    return _rooms[loop]


def egress() -> Egress:
    """Return the egress policy; raise ValueError for invalid exemptions."""
    return _cached_egress(tuple(settings.EGRESS_ALLOW))


@lru_cache(maxsize=1)
def _cached_egress(allowed: tuple[str, ...]) -> Egress:
    return Egress(allow=AllowList.read(allowed))
