"""An agent that works by a plan: plans, executes, checks and replans."""

from collections.abc import Collection, Mapping
from typing import Any

from agents.engine.loop.handoff import Handoff
from agents.engine.loop.lifecycle_events import error_event, finish_event, pause_event
from agents.engine.loop.run_loop import RunLoop, Step
from agents.engine.loop.run_state import RunState
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.termination import StopReason
from agents.engine.loop.tool_calls.tool_runner import ToolRunner
from agents.engine.text import cut_text

from ..errors import BudgetExceeded
from ..events import Event, EventType
from ..sentences import Sentence as _
from ..sentences import joined
from ..tool import TEXT_INPUT_SCHEMA, ToolRegistry
from .definition.plan import ExecutionPlan, assign_roles
from .definition.validation import find_problems
from .definition.yaml_reader import MAX_PROBLEMS
from .execution.context import MAX_CONCURRENCY, PlanContext, load_recorded_events
from .execution.executor import PlanExecution
from .execution.outcome import StepOutcome
from .plan_writer import ExecutedPlan, PlanWriter

MAX_RESULT_CHARS = 6_000
RESULTS_PROMPT = """\
The plan was carried out: {description}

{results}

Now answer the question from these results, in the language of the question. Name the step \
that a figure comes from where that helps. No tools can be used any more."""


class Orchestrator(AgentRuntime):
    """An agent that writes a plan first, which a person may have to approve (`Approvals`).

    `roles` maps roles to agents, `people` are roles that people have.
    """

    def __init__(
        self,
        *args: Any,
        roles: Mapping[str, str] | None = None,
        people: Collection[str] = (),
        max_replans: int = 2,
        most_at_once: int = MAX_CONCURRENCY,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.roles = roles or {}
        self.people = people
        self.max_replans = max_replans
        self.most_at_once = most_at_once

    def run_loop(self, run_state: RunState) -> RunLoop:
        return PlannedRunLoop(self, run_state)

    def problems(self, plan: ExecutionPlan) -> list[str]:
        """Return why this plan can't be executed; a plan without steps can."""
        if not plan.steps:
            return []
        tools = [self.tools.get(name) for name in self.tools.list_tools()]
        agents = {tool.agent for tool in tools if isinstance(tool, Handoff)}
        schemas = {t.name: getattr(t, "parameters", TEXT_INPUT_SCHEMA) for t in tools}
        roles = {*self.roles, *self.people}
        problems = find_problems(assign_roles(plan, self.roles), schemas, agents, roles)
        return [problem.message for problem in problems[:MAX_PROBLEMS]]


class PlannedRunLoop(RunLoop):
    """A run by a plan: write and execute plans until one succeeds, then answer."""

    agent: Orchestrator

    def __post_init__(self) -> None:
        super().__post_init__()
        self.recorded = load_recorded_events(self.run_state)
        self.executed_plans = list[ExecutedPlan]()
        self.plan: ExecutionPlan | None = None
        self.is_carried_out = False

    def _choose_step(self) -> Step:
        if self.is_carried_out:
            return super()._choose_step()
        agent = self.agent
        version = len(self.executed_plans) + 1
        if self.executed_plans and not self._has_plan(version):
            limit_step = self._limit_step()
            if limit_step is not None:
                return limit_step
        return PlanWriter(
            PlanContext(self, self.recorded, version, agent.most_at_once),
            self.executed_plans,
            check=agent.problems,
            roles={*agent.roles, *agent.people},
            shows=agent.approvals.shows_plan,
        )

    async def _follow_up(self, step: Step) -> list[Event]:
        match step:
            case PlanWriter(plan=None, is_waiting=True):
                return [pause_event(self.run_state)]
            case PlanWriter(plan=None):
                detail = step.refusal or ""
                return [finish_event(self.run_state, StopReason.CANCELLED, detail=detail)]
            case PlanWriter(plan=ExecutionPlan() as plan):
                self.plan = plan
                last = self.executed_plans[-1] if self.executed_plans else None
                self.next_step = PlanExecution(
                    step.context,
                    assign_roles(plan, self.agent.roles),
                    reused=last.reusable_outcomes(plan) if last else {},
                    halts=True,
                )
                return []
            case PlanExecution():
                return self._execution_events(step)
        return await super()._follow_up(step)

    def _execution_events(self, execution: PlanExecution) -> list[Event]:
        """Return the final events, unless an answer or another plan follows."""
        if execution.is_waiting:
            return [pause_event(self.run_state)]
        executed_plan = ExecutedPlan(self.plan or execution.plan, execution.outcomes)
        # A person ended the run at a limit before this plan, the last one, was completed.
        limit = self.due_limit()
        is_last = not self._has_plan(execution.context.version + 1)
        is_complete = not execution.is_held_up and not execution.failures
        if limit is not None and limit.ending is not None and is_last and not is_complete:
            self.executed_plans.append(executed_plan)
            self.next_step = self._limit_step()
            return []
        if execution.spent:
            error = error_event(self.run_state, BudgetExceeded(execution.spent))
            return [
                error,
                finish_event(self.run_state, StopReason.BUDGET, detail=execution.spent),
            ]
        self.executed_plans.append(executed_plan)
        if feedback := executed_plan.feedback():
            plan_count = len(self.executed_plans)
            if plan_count <= self.agent.max_replans:
                return []
            why = joined(" ", feedback)
            detail = (
                _("Gave up after 1 plan. %(why)s", why=why)
                if plan_count == 1
                else _("Gave up after %(plans)s plans. %(why)s", plans=plan_count, why=why)
            )
            return [finish_event(self.run_state, StopReason.CANCELLED, detail=detail)]
        self.is_carried_out = True
        self.tool_runner = ToolRunner(ToolRegistry(), self.agent.fallback)
        self.state.add_message("user", _results_message(execution.plan, execution.outcomes))
        return []

    def _has_plan(self, version: int) -> bool:
        """Whether this version of the plan was begun before an interruption."""
        rows = self.recorded.under(self.emit.parent, EventType.TASK)
        return any(row.data["plan"] == version for row in rows)

    def _wrap_up(self) -> Step:
        """Answer from the results of the steps that were carried out."""
        self.is_carried_out = True
        last = self.executed_plans[-1]
        self.state.add_message("user", _results_message(last.plan, last.outcomes))
        return super()._wrap_up()


def _results_message(plan: ExecutionPlan, outcomes: Mapping[str, StepOutcome]) -> str:
    """Format the plan's results in order, for the model that writes the answer."""
    results = [
        f"## {step.name} ({outcome.status})\n{cut_text(outcome.text, MAX_RESULT_CHARS)}"
        for step in plan.steps
        if (outcome := outcomes.get(step.name)) is not None
    ]
    return RESULTS_PROMPT.format(
        description=plan.description, results="\n\n".join(results) or "—"
    )
