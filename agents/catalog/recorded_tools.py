"""Tools that answer from the recording of a run, so that nothing is executed."""

from collections.abc import Iterable, Sequence
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
    recordings: list[dict[str, Any]] = []
    for step in tools.exclude(is_colleague).order_by("number"):
        # The tool that the model called, even if a fallback was used.
        replaced_tools = (
            note["tool"] for note in step.notes if note.get("kind") == StatusKind.TOOL_FALLBACK
        )
        recording = {
            "tool": next(replaced_tools, step.action),
            "arguments": step.action_input,
            "observation": step.observation,
            "is_error": step.status != AgentStep.Status.DONE,
        }
        if step.sources:
            recording["sources"] = step.sources
        recordings.append(recording)
    return recordings


def registry_of(recorded_calls: RecordedCalls) -> RegistryLoader:
    """Return a loader of an agent's current tools, which answer from the recording."""

    async def load(
        rows: Sequence[ToolRegistration],
        local_tools: Iterable[Tool],
        added_tools: Iterable[Tool] = (),
        **_options: Any,
    ) -> ToolRegistry:
        tools: list[Tool] = []
        for tool in local_tools:
            if isinstance(tool, AskPersonTool):
                tools.append(RecordedPerson(recorded_calls, tool))
            else:
                is_untrusted = bool(getattr(tool, "is_untrusted", False))
                tools.append(RecordedTool(recorded_calls, specification(tool), is_untrusted))
        for row in filter(mcp_servers.is_offered, rows):
            # Its accepted definition, without contacting the server.
            definition = row.definition or {}
            function = {
                "name": row.name,
                "description": row.description or definition.get("description", ""),
                "parameters": definition.get("parameters", {"type": "object"}),
            }
            spec = {"function": function}
            tools.append(RecordedTool(recorded_calls, spec, is_untrusted=True))
        replacements: dict[str, Tool] = {}
        for tool in added_tools:
            if isinstance(tool, AskPersonTool):
                replacements[tool.name] = RecordedPerson(recorded_calls, tool)
            else:
                replacements[tool.name] = tool
        unreplaced = [tool for tool in tools if tool.name not in replacements]
        return ToolRegistry([*unreplaced, *replacements.values()])

    return load
