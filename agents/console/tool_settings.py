"""What a tool is like: as its row says or else, where the row leaves it to the tool, itself."""

from typing import Any

from agents.catalog import tool_factory
from agents.engine.tool import ONE_TEXT
from agents.models import ToolRegistration
from agents.models.secret import Unreadable
from agents.tools.mcp.definition import Definition

Source = ToolRegistration.Source
Effect, Approval = ToolRegistration.Effect, ToolRegistration.Approval


def itself(row: ToolRegistration) -> Any:
    """The tool as it describes itself, whatever the row says; None where there is none."""
    if row.source == Source.MCP:
        is_trusted = row.server is not None and row.server.trusts_annotations
        return Definition(**row.definition).believed(is_trusted) if row.definition else None
    if row.source == Source.HTTP:
        return over_http(row)
    made = tool_factory.BUILT_IN.get(row.name)
    return made() if made else tool_factory.from_code().get(row.name)


def over_http(row: ToolRegistration) -> Any:
    try:
        return tool_factory.over_http(row)
    except (ValueError, Unreadable):
        return None


def schema_of(row: ToolRegistration) -> dict[str, Any] | None:
    """The JSON Schema of what it takes; None where there is no such tool."""
    tool = itself(row)
    return None if tool is None else dict(getattr(tool, "parameters", ONE_TEXT))


def effect(row: ToolRegistration) -> Effect | None:
    """What a repetition would do, as the row says or else the tool."""
    known = row.effect or getattr(itself(row), "effect", None)
    return Effect(known) if known else None


def asks(row: ToolRegistration) -> bool:
    if row.approval != Approval.TOOL:
        return row.approval == Approval.ALWAYS
    return said(itself(row)) == Approval.ALWAYS


def said(tool: Any) -> Approval:
    return Approval.ALWAYS if getattr(tool, "needs_approval", False) else Approval.NEVER
