"""The tools that a run's model is sent, and the bridge to those that it isn't sent."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents.engine.events import StatusKind
from agents.engine.tool import Tool, ToolRegistry, specification
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

from .approval import AskPersonTool
from .handoff import Handoff
from .run_state import RunState
from .tool_runner import ToolRunner

if TYPE_CHECKING:
    from .runtime import AgentRuntime


def add_search_tools(
    registry: ToolRegistry, selector: ToolSelector | None
) -> ToolSelector | None:
    """Add the constant tools if there are too many tools to send; return the selector then."""
    if selector is None or any(map(registry.has, CONSTANT_TOOLS)):
        return None
    tools = [registry.get(name) for name in registry.list_tools()]
    if not selector.applies_to(tools):
        return None
    registry.register(FindToolsTool(selector, lambda: tools))
    registry.register(CallToolTool())
    return selector


class OfferedTools:
    """The tools of each request: all that work, or a selection that stays the same."""

    def __init__(self, agent: "AgentRuntime", run_state: RunState) -> None:
        self.agent = agent
        self.run_state = run_state
        self.bridge: ToolBridge | None = None
        self._names: frozenset[str] | None = None

    def tools(self, tool_runner: ToolRunner) -> list[Tool]:
        found = tool_runner.available_tools()
        if self._names is None:
            return found
        return [tool for tool in found if tool.name in self._names]

    async def select(self, selector: ToolSelector, tool_runner: ToolRunner) -> None:
        """Choose the tools for a new run; a resumed one has the tools it started with."""
        run_state = self.run_state
        all_names = self.agent.tools.list_tools()
        if run_state.recorded_events:
            offered = run_state.offered.union(CONSTANT_TOOLS).intersection(all_names)
            self._offer(offered, tool_runner)
            return
        tools = tool_runner.available_tools()
        previous = await selector.previous() if selector.previous and not self._nested else ()
        chosen = await selector.select(tools, self._situation(tools, previous))
        self._offer(chosen.names, tool_runner)
        run_state.notes.append({"kind": StatusKind.TOOLS_SELECTED, **chosen.to_note()})

    @property
    def _nested(self) -> bool:
        return self.run_state.emit.parent is not None

    def _situation(self, tools: Sequence[Tool], previous: Collection[str]) -> Situation:
        messages = self.run_state.state.get_messages()
        asked = [m["content"] or "" for m in messages if m["role"] == "user"]
        used = {
            call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()
        }
        needed = {tool.name for tool in tools if isinstance(tool, Handoff | AskPersonTool)}
        return Situation(
            question=self.run_state.query,
            earlier=asked[-1] if asked else "",
            pinned=needed | {self.agent.retrieval_tool},
            used=used,
            previous=previous,
        )

    def _offer(self, names: frozenset[str], tool_runner: ToolRunner) -> None:
        self._names = names
        unsent = frozenset(self.agent.tools.list_tools()) - names
        tool_runner.unsent = unsent
        self.bridge = ToolBridge(self.agent.tools, unsent)


class ToolBridge:
    """Turns calls through `call_tool` into calls of the tools they name."""

    def __init__(self, registry: ToolRegistry, unsent: frozenset[str]) -> None:
        self.registry = registry
        self.unsent = unsent
        self._reported: set[str] = set()
        self._bridged: set[str] = set()

    def all_tools(self) -> list[Tool]:
        return [self.registry.get(name) for name in self.registry.list_tools()]

    def unwrap(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        self._bridged = {call.id for call in calls if call.name == CALL_TOOL}
        return tuple(map(unwrap, calls))

    def unwrap_plan(self, plan: PlanResult) -> PlanResult:
        return replace(plan, calls=tuple(map(unwrap, plan.calls))) if plan.calls else plan

    def misses(self, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """Describe calls of tools that weren't sent, each tool once in a run."""
        found: list[dict[str, Any]] = []
        for call in calls:
            is_known = self.registry.has(call.name)
            if call.name in self._reported or (is_known and call.name not in self.unsent):
                continue
            self._reported.add(call.name)
            how = "bridge" if call.id in self._bridged else "direct"
            about: dict[str, Any] = {"tool": call.name, "how": how, "is_known": is_known}
            if is_known:
                about["function"] = specification(self.registry.get(call.name))["function"]
            found.append(about)
        return found
