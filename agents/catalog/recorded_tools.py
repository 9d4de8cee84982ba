"""Tools that answer from the recording of a run, so that nothing is executed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Q

from agents.engine.events import StatusKind
from agents.engine.loop import (
    HANDOFF_PREFIX,
    AskPersonTool,
    RecordedCalls,
    RecordedPerson,
    RecordedTool,
)
from agents.engine.tool import Tool, ToolRegistry, specification
from agents.engine.tool_selection import CONSTANT_TOOLS
from agents.models import AgentStep, Run, ToolRegistration

from . import mcp_servers
from .agent_factory.runtime import RegistryLoader


def observations(run: Run) -> list[dict[str, Any]]:
    """Return the results of tools and people in order, without handoffs, which run again."""
    is_colleague = Q(action__startswith=HANDOFF_PREFIX) & ~Q(action=AskPersonTool.name)
    tools = run.steps.filter(kind=AgentStep.Kind.TOOL).exclude(action__in=CONSTANT_TOOLS)
    calls = tools.exclude(is_colleague)
    return [
        {
            "tool": _called_tool(step),
            "arguments": step.action_input,
            "observation": step.observation,
            "is_error": step.status != AgentStep.Status.DONE,
            **({"sources": step.sources} if step.sources else {}),
        }
        for step in calls.order_by("number")
    ]


def _called_tool(step: AgentStep) -> str:
    """Return the tool the model called, even if a fallback was used."""
    replaced = (
        note["tool"] for note in step.notes if note.get("kind") == StatusKind.TOOL_FALLBACK
    )
    return next(replaced, step.action)


def registry_of(recorded_calls: RecordedCalls) -> RegistryLoader:
    """Return a loader of an agent's current tools, which answer from the recording."""

    async def load(
        rows: Sequence[ToolRegistration],
        local_tools: Iterable[Tool],
        added_tools: Iterable[Tool] = (),
        **_options: Any,
    ) -> ToolRegistry:
        tools = [_recorded_tool(recorded_calls, tool) for tool in local_tools]
        tools += [
            RecordedTool(recorded_calls, _remote_spec(row), is_untrusted=True)
            for row in rows
            if mcp_servers.is_offered(row)
        ]
        replacements = {
            tool.name: _recorded_person(recorded_calls, tool) for tool in added_tools
        }
        return ToolRegistry(
            [*(t for t in tools if t.name not in replacements), *replacements.values()]
        )

    return load


def _recorded_tool(recorded_calls: RecordedCalls, tool: Tool) -> Tool:
    if isinstance(tool, AskPersonTool):
        return RecordedPerson(recorded_calls, tool)
    untrusted = bool(getattr(tool, "is_untrusted", False))
    return RecordedTool(recorded_calls, specification(tool), untrusted)


def _recorded_person(recorded_calls: RecordedCalls, tool: Tool) -> Tool:
    if isinstance(tool, AskPersonTool):
        return RecordedPerson(recorded_calls, tool)
    return tool


def _remote_spec(row: ToolRegistration) -> Mapping[str, Any]:
    """Return an MCP tool's accepted definition, without contacting the server."""
    definition = row.definition or {}
    return {
        "function": {
            "name": row.name,
            "description": row.description or definition.get("description", ""),
            "parameters": definition.get("parameters", {"type": "object"}),
        }
    }
