"""The tools that a run's model is sent, and the bridge to those that it isn't sent."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents.engine.events import StatusKind
from agents.engine.tool import ToolRegistry, specification
from agents.engine.tool_selection import (
    CALL_TOOL,
    CONSTANT_TOOLS,
    CallToolTool,
    FindToolsTool,
    Situation,
    ToolSelector,
    unwrap,
)
from agents.engine.turn.assembly import PlanResult, ToolCall

from ..capability import Capability
from ..handoff import Handoff
from .approval import AskPersonTool

if TYPE_CHECKING:
    from ..run_loop import RunLoop


class ToolSelection(Capability):
    """A model with many tools is only sent those that fit the question, and can find others."""

    def __init__(self, selector: ToolSelector) -> None:
        self.selector = selector

    async def tools(self, run: "RunLoop", tools: ToolRegistry) -> ToolRegistry:
        """Choose the tools of a new run; a resumed one has the tools it started with."""
        all_tools = list(tools)
        if any(map(tools.has, CONSTANT_TOOLS)) or not self.selector.applies_to(all_tools):
            return tools
        run_state = run.run_state
        find_tools = FindToolsTool(self.selector, lambda: all_tools)
        registry = ToolRegistry([*all_tools, find_tools, CallToolTool()], tools.withheld)
        if run_state.recorded_events:
            offered = run_state.offered.union(CONSTANT_TOOLS)
            registry.unsent = frozenset(registry.list_tools()) - offered
            return registry
        previous: Collection[str] = ()
        if self.selector.previous and run_state.emit.parent is None:
            previous = await self.selector.previous()
        messages = run_state.state.get_messages()
        questions = [m["content"] or "" for m in messages if m["role"] == "user"]
        people = (Handoff, AskPersonTool)
        situation = Situation(
            question=run_state.query,
            earlier=questions[-1] if questions else "",
            pinned={tool.name for tool in registry if isinstance(tool, people)},
            used={
                call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()
            },
            previous=previous,
        )
        chosen = await self.selector.select(list(registry), situation)
        run_state.notes.append({"kind": StatusKind.TOOLS_SELECTED, **chosen.to_note()})
        registry.unsent = frozenset(registry.list_tools()) - chosen.names
        return registry


class ToolBridge:
    """Turns calls through `call_tool` into calls of the tools they name."""

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry
        self._reported: set[str] = set()
        self._bridged: set[str] = set()

    def unwrap(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        self._bridged = {call.id for call in calls if call.name == CALL_TOOL}
        return tuple(map(unwrap, calls))

    def unwrap_plan(self, plan: PlanResult) -> PlanResult:
        return replace(plan, calls=tuple(map(unwrap, plan.calls))) if plan.calls else plan

    def misses(self, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """Describe calls of tools that weren't sent, each tool once in a run."""
        misses: list[dict[str, Any]] = []
        for call in calls:
            is_known = self.registry.has(call.name)
            if call.name in self._reported or (
                is_known and call.name not in self.registry.unsent
            ):
                continue
            self._reported.add(call.name)
            how = "bridge" if call.id in self._bridged else "direct"
            miss: dict[str, Any] = {"tool": call.name, "how": how, "is_known": is_known}
            if is_known:
                miss["function"] = specification(self.registry.get(call.name))["function"]
            misses.append(miss)
        return misses
