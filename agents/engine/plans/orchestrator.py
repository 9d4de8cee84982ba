"""Plan, carry out, check, and plan anew with what was learnt: an agent that works by a plan."""

from collections.abc import Collection, Mapping
from contextlib import aclosing
from typing import Any

from agents.engine.loop.handoff import Handoff
from agents.engine.loop.lifecycle_events import failed, finished, paused
from agents.engine.loop.run_loop import Course, Events
from agents.engine.loop.run_state import Trail
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.termination import StopReason
from agents.engine.loop.tool_runner import Toolbox

from ..errors import BudgetExceeded
from ..events import Event
from ..tool import ONE_TEXT, ToolRegistry
from .context import MOST_AT_ONCE, Site, recalled
from .executor import Execution
from .outcome import Outcome
from .plan import ExecutionPlan, assigned
from .plan_writer import Account, Planning
from .validation import problems
from .yaml_reader import MOST_PROBLEMS

MOST_TOLD = 6_000
RESULTS = """\
The plan was carried out: {description}

{results}

Now answer the question from these results, in the language of the question. Name the step \
that a figure comes from where that helps. No tools can be used any more."""


class Orchestrator(AgentRuntime):
    """An agent that writes a plan first; with `shows_plan` a person has to agree to it.

    `roles` says which agent has a role, `people` which roles people have.
    """

    def __init__(
        self,
        *args: Any,
        roles: Mapping[str, str] | None = None,
        people: Collection[str] = (),
        shows_plan: bool = False,
        max_replans: int = 2,
        most_at_once: int = MOST_AT_ONCE,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.roles = roles or {}
        self.people = people
        self.shows_plan = shows_plan
        self.max_replans = max_replans
        self.most_at_once = most_at_once

    def course(self, trail: Trail) -> Course:
        return PlannedCourse(self, trail)

    def problems(self, plan: ExecutionPlan) -> list[str]:
        """Why this plan could not be carried out, in sentences; one without steps can be."""
        if not plan.steps:
            return []
        tools = [self.tools.get(name) for name in self.tools.list_tools()]
        agents = {tool.agent for tool in tools if isinstance(tool, Handoff)}
        schemas = {t.name: getattr(t, "parameters", ONE_TEXT) for t in tools}
        roles = {*self.roles, *self.people}
        found = problems(assigned(plan, self.roles), schemas, agents, roles)
        return [problem.message for problem in found[:MOST_PROBLEMS]]


class PlannedCourse(Course):
    """The course of a run that works by a plan: its turns come after the plan, to answer."""

    agent: Orchestrator

    def __post_init__(self) -> None:
        super().__post_init__()
        self.past = recalled(self.trail)

    async def _turns(self) -> Events:
        if self.trail.is_over:
            return
        async with aclosing(self._by_plan()) as events:
            async for event in events:
                yield event
        if self.trail.is_over:
            return
        self.toolbox = Toolbox(ToolRegistry(), self.agent.fallback)
        async with aclosing(super()._turns()) as turns:
            async for event in turns:
                yield event

    async def _by_plan(self) -> Events:
        before = list[Account]()
        for version in range(1, self.agent.max_replans + 2):
            site = Site(self.agent, self.trail, self.past, version, self.agent.most_at_once)
            async with aclosing(self._version(site, before)) as events:
                async for event in events:
                    yield event
            if self.trail.is_over or not before[-1].feedback():
                return
        why = " ".join(before[-1].feedback())
        yield finished(self.trail, StopReason.CANCELLED, detail=_too_often(before, why))

    async def _version(self, site: Site, before: list[Account]) -> Events:
        agent = self.agent
        roles = {*agent.roles, *agent.people}
        planning = Planning(
            site, before, check=agent.problems, roles=roles, shows=agent.shows_plan
        )
        async with aclosing(planning.events()) as events:
            async for event in events:
                yield event
        if planning.plan is None:
            yield self._left(planning)
            return
        plan = assigned(planning.plan, agent.roles)
        kept = before[-1].still_good(planning.plan) if before else {}
        execution = Execution(site, plan, kept=kept, halts=True)
        async with aclosing(execution.events()) as events:
            async for event in events:
                yield event
        for event in self._ended(execution):
            yield event
        before.append(Account(planning.plan, execution.outcomes))
        if not self.trail.is_over and not execution.failures:
            self.state.add_message("user", _told(plan, execution.outcomes))

    def _left(self, planning: Planning) -> Event:
        if planning.is_waiting:
            return paused(self.trail)
        return finished(self.trail, StopReason.CANCELLED, detail=planning.refusal or "")

    def _ended(self, execution: Execution) -> list[Event]:
        """What comes after it, where that is neither the answer nor another plan."""
        if execution.is_waiting:
            return [paused(self.trail)]
        if execution.spent:
            spent = failed(self.trail, BudgetExceeded(execution.spent))
            return [spent, finished(self.trail, StopReason.BUDGET, detail=execution.spent)]
        return []


def _too_often(before: list[Account], why: str) -> str:
    plans = "1 plan" if len(before) == 1 else f"{len(before)} plans"
    return f"Given up after {plans}. {why}"


def _told(plan: ExecutionPlan, outcomes: Mapping[str, Outcome]) -> str:
    """What came of the plan, in its own order, as the model is told before it answers."""
    names = [step.name for step in plan.steps if step.name in outcomes]
    parts = [_result(name, outcomes[name]) for name in names]
    return RESULTS.format(description=plan.description, results="\n\n".join(parts) or "—")


def _result(name: str, outcome: Outcome) -> str:
    text = outcome.text
    cut = text if len(text) <= MOST_TOLD else f"{text[:MOST_TOLD]} [… cut]"
    return f"## {name} ({outcome.status})\n{cut}"
