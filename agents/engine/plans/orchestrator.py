"""An agent that works by a plan: plans, executes, checks and replans."""

from collections.abc import Collection, Mapping
from typing import Any

from agents.engine.loop.handoff import Handoff
from agents.engine.loop.lifecycle_events import error_event, finish_event, pause_event
from agents.engine.loop.run_limits import RunLimit
from agents.engine.loop.run_loop import RunLoop, Step
from agents.engine.loop.run_state import RunState
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.termination import StopReason
from agents.engine.loop.tool_runner import ToolRunner
from agents.engine.text import cut_text

from ..errors import BudgetExceeded
from ..events import Event, EventType
from ..tool import TEXT_INPUT_SCHEMA, ToolRegistry
from .context import MAX_CONCURRENCY, PlanContext, load_recorded_events
from .executor import PlanExecution
from .outcome import StepOutcome
from .plan import ExecutionPlan, assign_roles
from .plan_writer import ExecutedPlan, PlanWriter
from .validation import find_problems
from .yaml_reader import MAX_PROBLEMS

MAX_RESULT_CHARS = 6_000
RESULTS_PROMPT = """\
The plan was carried out: {description}

{results}

Now answer the question from these results, in the language of the question. Name the step \
that a figure comes from where that helps. No tools can be used any more."""


class Orchestrator(AgentRuntime):
    """An agent that writes a plan first; with `shows_plan` a person must approve it.

    `roles` maps roles to agents, `people` are roles that people have.
    """

    def __init__(
        self,
        *args: Any,
        roles: Mapping[str, str] | None = None,
        people: Collection[str] = (),
        shows_plan: bool = False,
        max_replans: int = 2,
        most_at_once: int = MAX_CONCURRENCY,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.roles = roles or {}
        self.people = people
        self.shows_plan = shows_plan
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
        found = find_problems(assign_roles(plan, self.roles), schemas, agents, roles)
        return [problem.message for problem in found[:MAX_PROBLEMS]]


class PlannedRunLoop(RunLoop):
    """A run by a plan: write and execute plans until one succeeds, then answer."""

    agent: Orchestrator

    def __post_init__(self) -> None:
        super().__post_init__()
        self.recorded = load_recorded_events(self.run_state)
        self.before = list[ExecutedPlan]()
        self.plan: ExecutionPlan | None = None
        self.is_carried_out = False

    def _choose_step(self) -> Step:
        if self.is_carried_out:
            return super()._choose_step()
        is_new = bool(self.before) and not self._has_plan(len(self.before) + 1)
        return (self._limit_step() if is_new else None) or self._plan_writer()

    def _plan_writer(self) -> PlanWriter:
        agent, version = self.agent, len(self.before) + 1
        context = PlanContext(agent, self.run_state, self.recorded, version, agent.most_at_once)
        roles = {*agent.roles, *agent.people}
        return PlanWriter(
            context, self.before, check=agent.problems, roles=roles, shows=agent.shows_plan
        )

    async def _follow_up(self, step: Step) -> list[Event]:
        match step:
            case PlanWriter(plan=None):
                return [self._no_plan_event(step)]
            case PlanWriter(plan=ExecutionPlan() as plan):
                self.plan = plan
                self.next_step = self._execution(step.context, plan)
                return []
            case PlanExecution():
                return self._execution_events(step)
        return await super()._follow_up(step)

    def _execution(self, context: PlanContext, plan: ExecutionPlan) -> PlanExecution:
        kept = self.before[-1].reusable_outcomes(plan) if self.before else {}
        assigned = assign_roles(plan, self.agent.roles)
        return PlanExecution(context, assigned, reused=kept, halts=True)

    def _execution_events(self, execution: PlanExecution) -> list[Event]:
        """Return the final events, unless an answer or another plan follows."""
        if execution.is_waiting:
            return [pause_event(self.run_state)]
        if self._ending_limit(execution) is not None:
            self.before.append(ExecutedPlan(self.plan or execution.plan, execution.outcomes))
            self.next_step = self._limit_step()
            return []
        if execution.spent:
            error = error_event(self.run_state, BudgetExceeded(execution.spent))
            return [
                error,
                finish_event(self.run_state, StopReason.BUDGET, detail=execution.spent),
            ]
        self.before.append(ExecutedPlan(self.plan or execution.plan, execution.outcomes))
        if feedback := self.before[-1].feedback():
            return self._give_up_events(feedback)
        self.is_carried_out = True
        self.tool_runner = ToolRunner(ToolRegistry(), self.agent.fallback)
        self.state.add_message("user", _results_message(execution.plan, execution.outcomes))
        return []

    def _ending_limit(self, execution: PlanExecution) -> RunLimit | None:
        """Return the limit at which a person ended the run, if this plan wasn't completed."""
        limit, is_last = self.due_limit(), not self._has_plan(execution.context.version + 1)
        is_complete = not execution.is_held_up and not execution.failures
        if limit is None or limit.ending is None or is_complete or not is_last:
            return None
        return limit

    def _has_plan(self, version: int) -> bool:
        """Whether this version of the plan was begun before an interruption."""
        rows = self.recorded.under(self.emit.parent, EventType.TASK)
        return any(row.data["plan"] == version for row in rows)

    def _wrap_up(self) -> Step:
        """Answer from the results of the steps that were carried out."""
        self.is_carried_out = True
        last = self.before[-1]
        self.state.add_message("user", _results_message(last.plan, last.outcomes))
        return super()._wrap_up()

    def _give_up_events(self, feedback: list[str]) -> list[Event]:
        if len(self.before) <= self.agent.max_replans:
            return []
        detail = _gave_up_message(self.before, " ".join(feedback))
        return [finish_event(self.run_state, StopReason.CANCELLED, detail=detail)]

    def _no_plan_event(self, plan_writer: PlanWriter) -> Event:
        if plan_writer.is_waiting:
            return pause_event(self.run_state)
        return finish_event(
            self.run_state, StopReason.CANCELLED, detail=plan_writer.refusal or ""
        )


def _gave_up_message(executed_plans: list[ExecutedPlan], reason: str) -> str:
    if len(executed_plans) == 1:
        return f"Gave up after 1 plan. {reason}"
    return f"Gave up after {len(executed_plans)} plans. {reason}"


def _results_message(plan: ExecutionPlan, outcomes: Mapping[str, StepOutcome]) -> str:
    """Format the plan's results in order, for the model that writes the answer."""
    names = [step.name for step in plan.steps if step.name in outcomes]
    parts = [_format_result(name, outcomes[name]) for name in names]
    return RESULTS_PROMPT.format(
        description=plan.description, results="\n\n".join(parts) or "—"
    )


def _format_result(name: str, outcome: StepOutcome) -> str:
    return f"## {name} ({outcome.status})\n{cut_text(outcome.text, MAX_RESULT_CHARS)}"
