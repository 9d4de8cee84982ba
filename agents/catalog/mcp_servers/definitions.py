"""Tool definitions: compared with what an administrator accepted."""

import logging
from dataclasses import dataclass

from django.db import transaction

from agents.models import McpServer, ToolRegistration
from agents.tools.mcp.definition import ToolDefinition, diff, digest, tool_name
from agents.tools.mcp.health import Health

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
    rows = server.tools.exclude(definition=None)
    rows_by_name = {accepted_definition(row).name: row for row in rows}
    definitions = {definition.name: definition for definition in health.tools}
    return SyncResult(
        health=health,
        added=tuple(
            n
            for n in definitions
            if n not in rows_by_name and _add_tool(server, definitions[n])
        ),
        changed=tuple(
            n
            for n in definitions
            if n in rows_by_name and _update_tool(rows_by_name[n], definitions[n])
        ),
        gone=tuple(
            n for n in rows_by_name if n not in definitions and _mark_gone(rows_by_name[n])
        ),
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
    is_same = digest(accepted_definition(row)) == digest(definition)
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
