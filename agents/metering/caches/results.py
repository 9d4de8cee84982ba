"""The cache of one tool in one run: exact keys over everything that a result depends on."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from agents.access import permissions
from agents.db import database
from agents.engine import call_context
from agents.engine.result_cache import CachedResult, digest
from agents.engine.text import CUT_NOTE
from agents.engine.tool import ToolInput, ToolResult
from agents.models import (
    CacheGroup,
    DatabaseConnection,
    McpServer,
    McpSignIn,
    ToolRegistration,
)
from agents.models.metering.caches import CacheKind
from agents.models.secret import EncryptedValue, UnreadableSecret
from agents.tools.mcp.errors import ServerUnavailable
from agents.tools.mcp.process.isolation import Isolation, scope_of

from . import groups, rights, storage

KEY_VERSION = 1  # another meaning of a key or value is another version
TOOL_FIELDS = ("name", "source", "endpoint", "method", "headers", "definition", "effect")
SERVER_FIELDS = (
    "pk",
    "name",
    "transport",
    "url",
    "command",
    "args",
    "folders",
    "env",
    "headers",
    "isolation",
    "sign_in",
    "files_deleted_at",
)
DATABASE_FIELDS = (
    "pk",
    "kind",
    "file",
    "host",
    "port",
    "database",
    "username",
    "password",
    "tls",
    "ca_certificate",
    "tables",
    "max_rows",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultStore:
    """Finds and saves a tool's results for one run.

    `is_read` is the effect for this run's agent; a tool that isn't read-only only evicts.
    `version` is its configuration. A public tool has the same results for everyone.
    """

    is_read: bool
    tool: int
    group: str
    version: str = ""
    isolation: Isolation = "shared"
    is_public: bool = False
    lifetime: float = 0.0
    user_id: int | None = None
    run_id: int | None = None
    is_code: bool = False  # the installation's own code can see the person and the chat
    # The MCP server that is called with an OAuth account, and whose it is; None for everyone's.
    account: tuple[int, int | None] | None = None

    @property
    def source(self) -> str:
        return f"tool:{self.tool}"

    async def key(self, input: ToolInput) -> str:
        try:
            instance = scope_of(self.isolation, call_context.current(), "")
        except ServerUnavailable:
            return ""
        if self.is_code and not self.is_public:  # such code can see the chat
            instance = f"{instance}|{call_context.current().chat_id}"
        return await database.run(self._key, input, instance)

    def _key(self, input: ToolInput, instance: str) -> str:
        """Return the key with the rights that the person has now."""
        if self.is_public:
            closed_tools = permissions.restrictions_for(self.user_id).tools
            scope = "public"
        else:
            user_rights = rights.read(self.user_id)
            closed_tools = user_rights.closed_tools
            scope = user_rights.fingerprint
        if self.tool in closed_tools or not scope:
            return ""
        sign_in = _sign_in(*self.account) if self.account else []
        if sign_in is None:
            return ""
        group = groups.open_group(self.group)
        if not groups.is_known_everywhere(group):
            return ""
        return digest(
            [
                KEY_VERSION,
                "tool",
                self.tool,
                self.version,
                group.pk,
                group.generation,
                instance,
                scope,
                input if isinstance(input, str) else {"arguments": dict(input)},
                *sign_in,
            ]
        )

    async def find(self, key: str) -> CachedResult | None:
        entry = await database.run(storage.find, key, self.source, CacheKind.TOOL)
        if entry is None:
            return None
        value, mark = entry
        return CachedResult(result=ToolResult(**value), mark=mark)

    async def save(
        self, key: str, input: ToolInput, result: ToolResult, seconds: float
    ) -> None:
        if not is_cacheable(result) or (result.is_private and self.is_public):
            return
        # A right or the place itself may have changed meanwhile: then this fits no key.
        if await self.key(input) != key:
            return
        lifetime = (
            self.lifetime if result.max_age is None else min(result.max_age, self.lifetime)
        )
        value: dict[str, Any] = {"output": result.output}
        value |= {"note": result.note} if result.note else {}
        value |= {"is_data": True} if result.is_data else {}
        await database.run(self._save, key, value, lifetime, seconds)

    def _save(self, key: str, value: Any, lifetime: float, seconds: float) -> None:
        storage.save(
            storage.NewEntry(
                key=key,
                kind=CacheKind.TOOL,
                source=self.source,
                value=value,
                lifetime=lifetime,
                seconds=seconds,
                user_id=None if self.is_public else self.user_id,
                run_id=self.run_id,
                group=CacheGroup.objects.filter(name=self.group).first(),
            )
        )

    async def evict(self) -> None:
        await database.run(groups.evict, self.group)


def is_cacheable(result: ToolResult) -> bool:
    """Whether a result is complete and depends on nothing that may vanish."""
    has_parts = bool(result.attachments) or result.sources is not None
    is_stale = result.max_age is not None and result.max_age <= 0
    return not (result.is_error or has_parts or is_stale or CUT_NOTE.search(result.output))


def _sign_in(server: int, user: int | None) -> list[str] | None:
    """Return which sign-in calls are made with; None if there is none.

    Another one may be to another account.
    """
    rows = McpSignIn.objects.filter(Q(user_id=user), server_id=server)
    row = rows.values_list("url", "signed_in_at").first()
    return [row[0], row[1].isoformat()] if row else None


def tool_version(row: ToolRegistration) -> str:
    """Return a hash of what a tool reads and how: address, headers, server or database.

    Empty if a secret can't be read: then nothing is cached.
    """
    try:
        return digest(
            [
                _values(row, TOOL_FIELDS),
                _values(row.server, SERVER_FIELDS),
                _values(row.connection, DATABASE_FIELDS),
            ]
        )
    except UnreadableSecret:
        return ""


def _values(
    row: ToolRegistration | McpServer | DatabaseConnection | None, names: tuple[str, ...]
) -> dict[str, Any]:
    values = {}
    for name in names if row is not None else ():
        value = getattr(row, name)
        match value:
            case EncryptedValue():
                value = value.reveal()
            case datetime():
                value = value.isoformat()
        values[name] = value
    return values
