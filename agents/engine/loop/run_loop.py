"""The course of one run: turns of thinking and acting, from the question to its end."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.engine.concurrency.thread import aside
from agents.engine.errors import (
    AgentError,
    LimitReached,
    MaxStepsExceeded,
    PlanParseError,
    named,
)
from agents.engine.events import Event, Stamp, Type
from agents.engine.guardrails.checks import Guardrails
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState, AgentStep
from agents.engine.turn.assembly import PlanResult, ToolCall

from .lifecycle_events import failed, finished, guarded, resumed, started
from .model_call import Listening
from .model_step import Thinking
from .output_schema import OutputSchema
from .output_step import OutputPhase, ThinkingAloud
from .recovery import doubt, last_plan, mend
from .run_state import Data, Trail
from .termination import (
    ERRORS,
    BudgetPolicy,
    ContinueWithThinking,
    ContinueWithTools,
    Decision,
    StopReason,
    TerminateImmediately,
    TerminateWithOutput,
    reason_of,
)
from .tool_runner import Toolbox
from .tool_step import Acting

if TYPE_CHECKING:
    from .runtime import AgentRuntime

MOST_REPAIRS = 2

Events = AsyncGenerator[Event, None]


@dataclass(slots=True)
class Course:
    """One run of one agent."""

    agent: "AgentRuntime"
    trail: Trail
    toolbox: Toolbox = field(init=False)
    thinking: Thinking = field(init=False)
    heard: Listening | None = None

    def __post_init__(self) -> None:
        agent = self.agent
        self.toolbox = Toolbox(
            agent.tools,
            agent.fallback,
            circuits=agent.circuits,
            auto_execute=agent.asking.auto_execute,
            guardrails=agent.guardrails,
        )
        self.toolbox.out_of_order |= self.trail.out_of_order
        self.toolbox.is_degraded = self.trail.is_degraded
        if isinstance(agent.policy, BudgetPolicy):
            # What a colleague uses up is the budget of whoever asked it.
            self.trail.budgets = (*self.trail.budgets, agent.policy)
        for planner in (agent.planner, *agent.fallback_planners):
            if planner.discretion is not None:
                planner.discretion.remember(self.trail.replaced)
        self.thinking = Thinking(self.trail, is_aloud=agent.output is not None)

    @property
    def emit(self) -> Stamp:
        return self.trail.emit

    @property
    def state(self) -> AgentState:
        return self.trail.state

    def started(self) -> Event:
        agent = self.agent
        return started(self.trail, agent.planner, self.toolbox.offered(), agent.max_steps)

    async def begin(self) -> Events:
        yield self.started()
        async with aclosing(self._watched(self._first_turn())) as events:
            async for event in events:
                yield event

    async def go_on(self) -> Events:
        if self.trail.is_over:
            return
        async with aclosing(self._watched(self._open_turn())) as events:
            async for event in events:
                yield event

    async def _watched(self, course: Events) -> Events:
        """The course, with an end whatever happens."""
        try:
            async with aclosing(course) as events:
                async for event in events:
                    yield event
        except AgentError as error:
            # Of a run that failed, what was said so far is all there is; at a limit it is not
            # the answer yet.
            said = self.heard.said if self.heard and not isinstance(error, LimitReached) else ()
            yield failed(self.trail, error)
            yield finished(
                self.trail,
                reason_of(error),
                answer="".join(said),
                detail=str(error),
                advice=error.advice,
            )
        finally:
            self.state.close_calls()

    async def _first_turn(self) -> Events:
        self.state.add_message("user", self.trail.query)
        async with aclosing(self._checked()) as events:
            async for event in events:
                yield event

    async def _checked(self) -> Events:
        rules, is_nested = self.agent.guardrails, self.emit.parent is not None
        inspect = rules.at_any_length().inspect if is_nested else rules.inspect
        query = self.trail.query
        inspected = await aside(len(query), inspect, query, "input")
        # The first one says all that decides how it goes on, should it be cut off after it.
        is_masked = inspected.text != query and not inspected.is_blocked
        masked = {"text": inspected.text} if is_masked else {}
        for finding in inspected.findings:
            yield guarded(self.trail, finding, **masked)
            masked = {}
        if inspected.is_blocked:
            detail = inspected.result.reason
            yield finished(self.trail, StopReason.BLOCKED, detail=detail)
            return
        if is_masked:
            self.trail.ask_instead(inspected.text)
        async with aclosing(self._turns()) as turns:
            async for event in turns:
                yield event

    async def _open_turn(self) -> Events:
        """What was begun is seen to first; then everything goes on as ever."""
        trail, cut = self.trail, self.trail.cut
        if trail.emit.parent is None and trail.past[-1].type is not Type.APPROVAL_RESOLVED:
            yield resumed(trail)
        for event in mend(trail):
            yield event
        doubt(trail, self.agent.tools)
        if not cut.is_checked:
            course = self._checked()
        elif trail.open and cut.is_decided:
            course = self._act()
        else:
            course = self._last_decision()
        async with aclosing(course) as events:
            async for event in events:
                yield event
        async with aclosing(self._turns()) as turns:
            async for event in turns:
                yield event

    async def _last_decision(self) -> Events:
        """Follow what the model, a guardrail or a failure had decided, if any of them had."""
        trail, cut = self.trail, self.trail.cut
        if cut.finding is not None:
            yield finished(self.trail, StopReason.BLOCKED, detail=cut.finding["reason"])
        elif cut.error is not None:
            detail, advice = cut.error["message"], cut.error["advice"]
            yield finished(
                self.trail,
                StopReason(cut.error.get("stopped_reason", StopReason.ERROR)),
                answer="" if _is_limit(cut.error) else "".join(cut.words),
                detail=detail,
                advice=advice,
            )
        elif trail.open or cut.answer is not None:
            async with aclosing(self._decide(last_plan(trail))) as deciding:
                async for event in deciding:
                    yield event

    async def _turns(self) -> Events:
        while not self.trail.is_over and self.trail.turn < self.agent.max_steps:
            self.trail.turn += 1
            async with aclosing(self._take_turn()) as turn:
                async for event in turn:
                    yield event
        if not self.trail.is_over:
            raise MaxStepsExceeded(_no_answer(self.agent.max_steps))

    async def _take_turn(self) -> Events:
        output, tools = self.agent.output, self.toolbox.offered()
        if output is not None and not tools:
            async with aclosing(self._shape(output)) as shaping:
                async for event in shaping:
                    yield event
            return
        heard = self._listen(self.trail.next_step())
        try:
            async with aclosing(self.thinking.events(heard, tools)) as words:
                async for event in words:
                    yield event
        except PlanParseError as error:
            if self.trail.repairs >= MOST_REPAIRS:
                raise
            for event in self.thinking.ask_again(heard, error):
                yield event
            return
        for finding in heard.findings:
            yield guarded(self.trail, finding)
        if heard.finding is not None:
            yield finished(self.trail, StopReason.BLOCKED, detail=heard.finding.reason)
            return
        async with aclosing(self._decide(heard.plan or PlanResult())) as deciding:
            async for event in deciding:
                yield event

    async def _decide(self, plan: PlanResult) -> Events:
        output = self.agent.output
        match self._decision(plan):
            case ContinueWithTools(calls):
                self._keep_open(plan, calls)
                async with aclosing(self._act()) as acting:
                    async for event in acting:
                        yield event
            case TerminateWithOutput(text) if output is not None:
                async with aclosing(self._shape(output, text)) as shaping:
                    async for event in shaping:
                        yield event
            case TerminateWithOutput(text):
                for event in await self._conclude(plan, text):
                    yield event
            case TerminateImmediately(reason, detail):
                if reason in ERRORS:
                    raise ERRORS[reason](detail)
                yield finished(self.trail, reason, detail=detail)

    def _decision(self, plan: PlanResult) -> Decision:
        decision = self.agent.policy.decide(plan, self.trail.progress)
        spent = [budget.spent(self.trail.progress) for budget in self.trail.budgets]
        if any(spent) and isinstance(decision, ContinueWithTools | ContinueWithThinking):
            return TerminateImmediately(StopReason.BUDGET, next(filter(None, spent)))
        return decision

    async def _shape(self, output: OutputSchema, words: str = "") -> Events:
        """Tools are off from here: the answer is asked for in the form of its schema."""
        phase = OutputPhase(output, self.trail, self._listen, self.thinking.recorded, words)
        async with aclosing(phase.events()) as events:
            async for event in events:
                yield event
        for finding in phase.findings:
            yield guarded(self.trail, finding)
        if phase.finding is not None:
            yield finished(self.trail, StopReason.BLOCKED, detail=phase.finding.reason)
            return
        answer = phase.plan.final_answer or ""
        for event in await self._conclude(phase.plan, answer, output=phase.value):
            yield event

    def _listen(self, step: int) -> Listening:
        agent = self.agent
        planner, *others = self._planners()
        kind = Listening if agent.output is None else ThinkingAloud
        self.heard = kind(
            planner,
            agent.guardrails,
            agent.retry,
            self.emit,
            step,
            fallbacks=others,
            circuits=agent.circuits,
        )
        return self.heard

    def _planners(self) -> list[ReActPlanner]:
        """The model that works, and those to fall back to: a run does not go back to one."""
        if self.heard is not None:
            return [self.heard.planner, *self.heard.fallbacks]
        chain = [self.agent.planner, *self.agent.fallback_planners]
        names = [planner.model for planner in chain]
        return chain[names.index(self.trail.model) :] if self.trail.model in names else chain

    def _keep_open(self, plan: PlanResult, calls: Sequence[ToolCall]) -> None:
        """A policy may allow some of the calls of a turn, and not the others."""
        pairs = zip(self.trail.open, plan.calls, strict=True)
        self.trail.open = tuple(call for call, wanted in pairs if wanted in calls)

    async def _act(self) -> Events:
        acting = Acting(self.trail, self.toolbox, self.agent.asking, self.agent.guardrails)
        async with aclosing(acting.events()) as events:
            async for event in events:
                self.trail.is_over |= event.type is Type.RUN_PAUSED
                yield event

    async def _conclude(
        self,
        plan: PlanResult,
        text: str,
        output: Any = None,
        guardrails: Guardrails | None = None,
    ) -> list[Event]:
        rules = guardrails or self.agent.guardrails
        inspected = await aside(len(text), rules.inspect, text, "output")
        told = {f.details["rule"] for f in self.heard.findings} if self.heard else set()
        new = [f for f in inspected.findings if f.details.get("rule") not in told]
        said = [guarded(self.trail, finding) for finding in new]
        if inspected.is_blocked:
            detail = inspected.result.reason
            return [*said, finished(self.trail, StopReason.BLOCKED, detail=detail)]
        text = inspected.text
        self.state.add_message("assistant", text)
        self.state.add_step(AgentStep(thought=plan.thought))
        reason = StopReason.DEGRADED if self.toolbox.is_degraded else StopReason.COMPLETED
        detail = plan.turn.caveat
        return [*said, finished(self.trail, reason, answer=text, detail=detail, output=output)]


def _is_limit(told: Data) -> bool:
    return issubclass(named(told["type"]), LimitReached)


def _no_answer(steps: int) -> str:
    return f"There was no answer after {steps} step{'' if steps == 1 else 's'}."
