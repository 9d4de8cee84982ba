"""A tool's settings: from its row or, where empty, from the tool itself."""

from typing import Any

from agents.catalog.tools import tool_factory
from agents.engine.tool import TEXT_INPUT_SCHEMA
from agents.models import ToolRegistration
from agents.models.secret import UnreadableSecret
from agents.tools.mcp.definition import ToolDefinition
from agents.tools.web import WebSearchTool

Source = ToolRegistration.Source
Effect = ToolRegistration.Effect
ApprovalMode = ToolRegistration.ApprovalMode


def load_tool(row: ToolRegistration) -> Any:
    """Return the tool as it describes itself, or None if there is none."""
    if row.source == Source.MCP:
        is_trusted = row.server is not None and row.server.trusts_annotations
        return (
            ToolDefinition(**row.definition).with_trust(is_trusted) if row.definition else None
        )
    if row.source == Source.HTTP:
        return load_http_tool(row)
    if row.connection is not None:
        return tool_factory.database_tool(row)
    tool_class = tool_factory.BUILT_IN_TOOLS.get(row.name)
    return tool_class() if tool_class else tool_factory.code_tool(row)


def is_unconfigured(row: ToolRegistration) -> bool:
    """Whether it is off until somebody chooses a service for it."""
    is_search = row.source == Source.OWN and row.name == WebSearchTool.name
    return is_search and not row.search_service


def load_http_tool(row: ToolRegistration) -> Any:
    try:
        return tool_factory.http_tool(row)
    except (ValueError, UnreadableSecret):
        return None


def unavailable_reason(row: ToolRegistration) -> str:
    """Return why a built-in tool can't be used on this machine, if so."""
    is_built_in = row.source == Source.OWN and row.name in tool_factory.BUILT_IN_TOOLS
    return str(getattr(load_tool(row), "unavailable", "")) if is_built_in else ""


def input_schema(row: ToolRegistration) -> dict[str, Any] | None:
    """Return the JSON Schema of its input; None if there is no such tool."""
    tool = load_tool(row)
    return None if tool is None else dict(getattr(tool, "parameters", TEXT_INPUT_SCHEMA))


def effect(row: ToolRegistration) -> ToolRegistration.Effect | None:
    """Return the effect of repeating a call, from the row or the tool."""
    name = row.effect or getattr(load_tool(row), "effect", None)
    return Effect(name) if name else None


def can_be_cached(row: ToolRegistration) -> bool:
    """Whether the results of a tool can be saved: not those of built-in tools.

    They are computed here, depend on the chat, or number the passages of a run.
    """
    return row.source != Source.OWN or row.name in tool_factory.code_tools()


def requires_approval(row: ToolRegistration) -> bool:
    if row.approval != ApprovalMode.TOOL:
        return row.approval == ApprovalMode.ALWAYS
    return default_approval(load_tool(row)) == ApprovalMode.ALWAYS


def default_approval(tool: Any) -> ToolRegistration.ApprovalMode:
    return ApprovalMode.ALWAYS if getattr(tool, "needs_approval", False) else ApprovalMode.NEVER
