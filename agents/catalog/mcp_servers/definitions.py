"""Tool definitions: compared with what an administrator accepted."""

import logging
from dataclasses import dataclass

from django.db import transaction

from agents.models import McpServer, ToolRegistration
from agents.tools.mcp.connection.health import Health
from agents.tools.mcp.definition import ToolDefinition, diff, digest, tool_name

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


def accepted_definition(row: ToolRegistration) -> ToolDefinition:
    if row.definition is None:
        raise ValueError(f"The tool {row.name} has no definition.")
    return ToolDefinition(**row.definition)


def sync_tools(server: McpServer, health: Health) -> SyncResult:
    """Save the server's current tools, and return what has changed."""
    rows = server.tools.exclude(definition=None)
    rows_by_name = {accepted_definition(row).name: row for row in rows}
    definitions = {definition.name: definition for definition in health.tools}
    added: list[str] = []
    changed: list[str] = []
    for definition in definitions.values():
        row = rows_by_name.pop(definition.name, None)
        if row is None:
            # A new tool is accepted; agents only get it from an administrator.
            name = tool_name(server.name, definition.name)
            if ToolRegistration.objects.filter(name=name).exists():
                sentence = "A tool of the MCP server %s has the name of another tool."
                logger.warning(sentence, server.name)
                continue
            server.tools.create(
                name=name,
                source=ToolRegistration.Source.MCP,
                definition=definition.as_dict(),
                timeout=server.timeout,
            )
            added.append(definition.name)
            continue
        # One that differs from its accepted definition is withheld until it is equal again.
        is_same = digest(accepted_definition(row)) == digest(definition)
        pending = None if is_same else definition.as_dict()
        if row.pending != pending or row.is_gone:
            row.pending = pending
            row.is_gone = False
            row.save(update_fields=["pending", "is_gone"])
        if not is_same:
            changed.append(definition.name)
    for row in rows_by_name.values():
        if not row.is_gone:
            row.is_gone = True
            row.save(update_fields=["is_gone"])
    return SyncResult(
        health=health, added=tuple(added), changed=tuple(changed), gone=tuple(rows_by_name)
    )


def pending_changes(row: ToolRegistration) -> list[tuple[str, str, str]]:
    """Return the differences to the accepted definition: (what, before, now)."""
    if not row.pending:
        return []
    return diff(accepted_definition(row), ToolDefinition(**row.pending))


def pending_digest(row: ToolRegistration) -> str:
    """Return the digest an acceptance is bound to, so that it never covers a later change."""
    return digest(ToolDefinition(**row.pending)) if row.pending else ""


@transaction.atomic
def accept(row: ToolRegistration, reviewed_digest: str) -> None:
    """Accept a changed definition; raise DefinitionChanged if it isn't the displayed one."""
    row = ToolRegistration.objects.select_for_update().get(pk=row.pk)
    if not row.pending or pending_digest(row) != reviewed_digest:
        raise DefinitionChanged
    row.definition = row.pending
    row.pending = None
    row.save(update_fields=["definition", "pending"])
