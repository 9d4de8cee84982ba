"""A workflow: a plan that an administrator wrote, ready to run."""

from collections.abc import Mapping
from typing import Any

from agents.engine.loop.lifecycle_events import finish_event, pause_event
from agents.engine.loop.limit_step import stop_event
from agents.engine.loop.run_loop import RunLoop, Step
from agents.engine.loop.run_state import RunState
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.termination import StopReason

from ..events import Event, EventType
from ..sentences import Sentence as _
from .definition.plan import ExecutionPlan, assign_roles
from .execution.context import MAX_CONCURRENCY, PlanContext, load_recorded_events
from .execution.executor import PlanExecution
from .execution.outcome import to_text
from .plan_writer import PLAN


class WorkflowRuntime(AgentRuntime):
    """Executes one plan and answers with the output of its last steps.

    It has the interface of an agent, so it runs, waits and resumes like one. Its model only
    checks expected outcomes.
    """

    def __init__(
        self,
        *args: Any,
        plan: ExecutionPlan,
        roles: Mapping[str, str] | None = None,
        most_at_once: int = MAX_CONCURRENCY,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.plan = assign_roles(plan.with_step_names(), roles or {})
        self.most_at_once = most_at_once

    def run_loop(self, run_state: RunState) -> RunLoop:
        return WorkflowRunLoop(self, run_state)


class WorkflowRunLoop(RunLoop):
    """A workflow's run: records the plan, then executes it in one step."""

    agent: WorkflowRuntime
    context: PlanContext
    has_written_calls = True

    async def _first_events(self) -> list[Event]:
        events = await super()._first_events()
        if self.run_state.is_over:
            return events
        recorded = load_recorded_events(self.run_state)
        self.context = PlanContext(self, recorded, 1, self.agent.most_at_once)
        # The plan's row, unless it is already recorded.
        plan = self.agent.plan
        rows = recorded.under(self.emit.parent, EventType.TASK)
        recorded_number = next(
            (event.data["step"] for event in rows if event.data["kind"] == PLAN), None
        )
        number = recorded_number or self.context.next_step()
        step_fields = {"step": number, "turn": 1, "plan": 1, "kind": PLAN}
        if recorded_number is None:
            task = self.emit(EventType.TASK, **step_fields, name=PLAN, work=PLAN, attempt=1)
            events.append(task)
        if not any(recorded.under(self.emit.parent, EventType.PLAN)):
            plan_fields = {"by": self.agent.name, "changes": {}, "feedback": []}
            events.append(
                self.emit(EventType.PLAN, **step_fields, **plan.to_dict(), **plan_fields)
            )
        if recorded.end(number) is None:
            description = plan.description
            events.append(
                self.emit(EventType.STEP, **step_fields, status="done", observation=description)
            )
        return events

    def _choose_step(self) -> Step:
        return PlanExecution(self.context, self.agent.plan)

    async def _follow_up(self, step: Step) -> list[Event]:
        if not isinstance(step, PlanExecution):
            return await super()._follow_up(step)
        if step.is_waiting:
            return [pause_event(self.run_state)]
        answer = format_answer(step.output)
        limit = self.due_limit()
        if limit is not None and limit.ending == "stop":
            return [stop_event(self.run_state, limit, answer)]
        reason = StopReason.COMPLETED
        detail = ""
        if step.spent:
            reason = StopReason.BUDGET
            detail = step.spent
        elif failed := [s for s in step.plan.steps if s.name in step.unhandled_failures]:
            was_declined = failed[0].kind == "ask"
            reason = StopReason.CANCELLED if was_declined else StopReason.ERROR
            detail = _(
                "“%(step)s”: %(reason)s",
                step=failed[0].name,
                reason=step.failures[failed[0].name].reason,
            )
        return [finish_event(self.run_state, reason, answer=answer, detail=detail)]


def format_answer(output: Any) -> str:
    """Format the output of the last steps; several get their names as headings."""
    if not isinstance(output, dict):
        return to_text(output) if output is not None else ""
    return "\n\n".join(f"### {name}\n\n{to_text(value)}" for name, value in output.items())
