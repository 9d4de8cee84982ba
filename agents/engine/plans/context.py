"""The context in which a plan is executed, shared by all its steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.engine.loop.run_state import RunState, rebuild
from agents.engine.loop.termination import limit_message, tool_limits
from agents.engine.turn.assembly import ToolCall

from ..events import EventFactory
from ..state import AgentState
from .history import RecordedEvents

if TYPE_CHECKING:
    from agents.engine.loop.runtime import AgentRuntime

MAX_CONCURRENCY = 100

Names = Mapping[str, Any]


def load_recorded_events(trail: RunState) -> RecordedEvents:
    """Load the recorded events and count the plan's own calls, not those of other agents."""
    past = RecordedEvents(trail.past)
    for event in past.calls(trail.emit.parent):
        if event.agent != trail.emit.agent:
            continue
        trail.progress.record(ToolCall(id=event.data["id"], **event.data["function"]))
    return past


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The agent and run that execute a plan, and what was recorded; `version` is the plan's."""

    agent: "AgentRuntime"
    trail: RunState
    past: RecordedEvents
    version: int = 1
    most_at_once: int = MAX_CONCURRENCY

    def next_step(self) -> int:
        return self.trail.emit.next_step()

    def reached_limit(self) -> str:
        """Return which limit of the run is reached, or an empty string."""
        found = (budget.reached_limit(self.trail.progress) for budget in self.trail.budgets)
        return next(filter(None, found), "")

    def exceeded_tool_limit(self, tool: str) -> str:
        """Return why a tool can't be called again; the general limit only applies to models."""
        most = tool_limits(self.agent.policy).get(tool)
        times = self.trail.progress.per_tool()[tool]
        return limit_message(tool, most) if most is not None and times >= most else ""

    def event_factory(self, parent: int | None) -> EventFactory:
        """Return the event factory for a step, or for the plan itself."""
        stamp = self.trail.emit
        return stamp if parent is None else stamp.under(stamp.agent, parent)

    def step_state(self, step: int, *calls: ToolCall) -> RunState:
        """Return the run state of the work inside this step."""
        ours = self.trail
        trail = rebuild(self.past.tree(step), self.event_factory(step), AgentState(), calls)
        trail.path, trail.budgets, trail.progress = ours.path, ours.budgets, ours.progress
        trail.turn = self.version
        return trail
