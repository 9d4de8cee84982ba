"""The context in which a plan is executed, shared by all its steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.engine.loop.limit_step import request_events
from agents.engine.loop.run_limits import RunLimit
from agents.engine.loop.run_state import RunState, rebuild
from agents.engine.loop.shared_context import shared_files, with_passages
from agents.engine.loop.termination import due_limit, find_tool_limits, limit_message
from agents.engine.turn.assembly import ToolCall

from ...events import Event, EventFactory
from ...state import AgentState
from .history import RecordedEvents

if TYPE_CHECKING:
    from agents.engine.loop.run_loop import RunLoop
    from agents.engine.loop.runtime import AgentRuntime

MAX_CONCURRENCY = 100

Names = Mapping[str, Any]


def load_recorded_events(run_state: RunState) -> RecordedEvents:
    """Load the recorded events and count the plan's own calls, not those of other agents."""
    recorded = RecordedEvents(run_state.recorded_events)
    for event in recorded.calls(run_state.emit.parent):
        # The search before the first step is counted already.
        if event.agent != run_state.emit.agent or "messages" in event.data:
            continue
        run_state.progress.record(ToolCall(id=event.data["id"], **event.data["function"]))
        if (response := recorded.response(event.data["id"])) is not None:
            run_state.progress.record_response(response.data)
    return recorded


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The run that executes a plan, and what was recorded; `version` is the plan's."""

    run: "RunLoop"
    recorded: RecordedEvents
    version: int = 1
    most_at_once: int = MAX_CONCURRENCY

    @property
    def agent(self) -> "AgentRuntime":
        return self.run.agent

    @property
    def run_state(self) -> RunState:
        return self.run.run_state

    def next_step(self) -> int:
        return self.run_state.emit.next_step()

    def due_limit(self) -> RunLimit | None:
        """Return the limit of the run that lets nothing more start, or None."""
        return due_limit(self.run_state.budgets, self.run_state.progress)

    def reached_limit(self) -> str:
        """Return which limit of the run is reached for good, or an empty string."""
        limit = self.due_limit()
        return limit.message if limit is not None and not limit.asks else ""

    def limit_request(self, parent: int | None) -> list[Event] | None:
        """Return the request about a limit that is due, below this step; None if none is.

        It is empty if a parallel step has asked already.
        """
        limit = self.due_limit()
        if limit is None or not limit.asks:
            return None
        return request_events(self.run_state, limit, self.event_factory(parent))

    def exceeded_tool_limit(self, tool: str) -> str:
        """Return why a tool can't be called again; the general limit only applies to models."""
        limit = find_tool_limits(self.agent.policy).get(tool)
        progress = self.run_state.progress
        call_count = progress.per_tool()[tool] + progress.stand_ins[tool]
        return limit_message(tool, limit) if limit is not None and call_count >= limit else ""

    def event_factory(self, parent: int | None) -> EventFactory:
        """Return the event factory for a step, or for the plan itself."""
        emit = self.run_state.emit
        return emit if parent is None else emit.child(emit.agent, parent)

    def step_state(self, step: int, *calls: ToolCall) -> RunState:
        """Return the run state of the work inside this step."""
        ours = self.run_state
        state = AgentState()
        state.question = with_passages(
            shared_files(ours.state), ours.state, ours.query, ours.opening_tool
        )
        run_state = rebuild(self.recorded.tree(step), self.event_factory(step), state, calls)
        run_state.path = ours.path
        run_state.budgets = ours.budgets
        run_state.progress = ours.progress
        run_state.material = ours.material
        run_state.turn = self.version
        return run_state
