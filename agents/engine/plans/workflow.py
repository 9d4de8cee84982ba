"""A plan that somebody wrote beforehand, ready to be carried out."""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Any

from agents.engine.loop.lifecycle_events import finished, paused
from agents.engine.loop.run_loop import Course, Events
from agents.engine.loop.run_state import Trail
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.termination import StopReason

from ..events import Event, Type
from .context import MOST_AT_ONCE, Site, recalled
from .executor import Execution
from .outcome import Outcome, text_of
from .plan import ExecutionPlan, ExecutionStep, assigned
from .plan_writer import PLAN


class Workflow(AgentRuntime):
    """Carries out one plan, and answers with what its last steps gave.

    It has the face of an agent, so it runs, waits and goes on as one does. Its model is asked
    for nothing but to check what is expected of a step.
    """

    def __init__(
        self,
        *args: Any,
        plan: ExecutionPlan,
        roles: Mapping[str, str] | None = None,
        most_at_once: int = MOST_AT_ONCE,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.asking.is_written = True
        self.plan = assigned(plan.named(), roles or {})
        self.most_at_once = most_at_once

    def course(self, trail: Trail) -> Course:
        return WorkflowCourse(self, trail)


class WorkflowCourse(Course):
    agent: Workflow

    async def _turns(self) -> Events:
        if self.trail.is_over:
            return
        past, plan = recalled(self.trail), self.agent.plan
        site = Site(self.agent, self.trail, past, 1, self.agent.most_at_once)
        for event in self._shown(site, plan):
            yield event
        execution = Execution(site, plan)
        async with aclosing(execution.events()) as events:
            async for event in events:
                yield event
        yield self._ended(execution)

    def _shown(self, site: Site, plan: ExecutionPlan) -> Iterator[Event]:
        """The plan as a row, as far as that was not told before."""
        rows = site.past.under(self.emit.parent, Type.TASK)
        known = next((event.data["step"] for event in rows if event.data["kind"] == PLAN), None)
        number = known or site.next_step()
        about = {"step": number, "turn": 1, "plan": 1, "kind": PLAN}
        if known is None:
            yield self.emit(Type.TASK, **about, name=PLAN, work=PLAN, attempt=1)
        if not any(site.past.under(self.emit.parent, Type.PLAN)):
            told = {"by": self.agent.name, "changes": {}, "feedback": []}
            yield self.emit(Type.PLAN, **about, **plan.to_dict(), **told)
        if site.past.end(number) is None:
            yield self.emit(Type.STEP, **about, status="done", observation=plan.description)

    def _ended(self, execution: Execution) -> Event:
        if execution.is_waiting:
            return paused(self.trail)
        answer = answer_of(execution.output)
        if execution.spent:
            reason, detail = StopReason.BUDGET, execution.spent
        else:
            reason, detail = self._reason(execution)
        return finished(self.trail, reason, answer=answer, detail=detail)

    def _reason(self, execution: Execution) -> tuple[StopReason, str]:
        for step in execution.plan.steps:
            outcome = execution.outcomes.get(step.name)
            if outcome is not None and outcome.status == "failed":
                was_declined = step.kind == "ask"
                reason = StopReason.CANCELLED if was_declined else StopReason.ERROR
                return reason, _failure(step, outcome)
        return StopReason.COMPLETED, ""


def answer_of(output: Any) -> str:
    """What the last steps gave, in words: of several, each under its name."""
    if not isinstance(output, dict):
        return text_of(output) if output is not None else ""
    return "\n\n".join(f"### {name}\n\n{text_of(value)}" for name, value in output.items())


def _failure(step: ExecutionStep, outcome: Outcome) -> str:
    return f"“{step.name}”: {outcome.reason}"
