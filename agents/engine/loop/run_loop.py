"""One run of an agent, from the question to its end."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.errors import (
    AgentError,
    LimitReached,
    MaxStepsExceeded,
    PlanParseError,
    error_class,
)
from agents.engine.events import Event, EventFactory, EventType
from agents.engine.guardrails.checks import Guardrails
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState, AgentStep
from agents.engine.turn.assembly import PlanResult, ToolCall

from .lifecycle_events import (
    error_event,
    finish_event,
    guardrail_event,
    resume_event,
    start_event,
)
from .model_call import ModelCall
from .model_step import ModelStep
from .output_schema import OutputSchema
from .output_step import OutputStep, ThoughtModelCall
from .recovery import close_interrupted_calls, last_plan, mark_uncertain_calls
from .run_state import Data, RunState
from .termination import (
    ERRORS,
    BudgetPolicy,
    ContinueWithThinking,
    ContinueWithTools,
    Decision,
    StopReason,
    TerminateImmediately,
    TerminateWithOutput,
    stop_reason,
)
from .tool_runner import ToolRunner
from .tool_step import ToolStep

if TYPE_CHECKING:
    from .runtime import AgentRuntime

MAX_REPAIRS = 2

Events = AsyncGenerator[Event, None]


@dataclass(slots=True)
class RunLoop:
    """One run of one agent."""

    agent: "AgentRuntime"
    trail: RunState
    toolbox: ToolRunner = field(init=False)
    thinking: ModelStep = field(init=False)
    heard: ModelCall | None = None

    def __post_init__(self) -> None:
        agent = self.agent
        self.toolbox = ToolRunner(
            agent.tools,
            agent.fallback,
            circuits=agent.circuits,
            auto_execute=agent.asking.auto_execute,
            guardrails=agent.guardrails,
        )
        self.toolbox.out_of_order |= self.trail.out_of_order
        self.toolbox.is_degraded = self.trail.is_degraded
        if isinstance(agent.policy, BudgetPolicy):
            # Another agent's usage counts against its caller's budget.
            self.trail.budgets = (*self.trail.budgets, agent.policy)
        for planner in (agent.planner, *agent.fallback_planners):
            if planner.discretion is not None:
                planner.discretion.remember(self.trail.replaced)
        self.thinking = ModelStep(self.trail, is_aloud=agent.output is not None)

    @property
    def emit(self) -> EventFactory:
        return self.trail.emit

    @property
    def state(self) -> AgentState:
        return self.trail.state

    def started(self) -> Event:
        agent = self.agent
        return start_event(self.trail, agent.planner, self.toolbox.offered(), agent.max_steps)

    async def begin(self) -> Events:
        yield self.started()
        async with aclosing(self._ensure_finished(self._first_turn())) as events:
            async for event in events:
                yield event

    async def go_on(self) -> Events:
        if self.trail.is_over:
            return
        async with aclosing(self._ensure_finished(self._resume_turn())) as events:
            async for event in events:
                yield event

    async def _ensure_finished(self, course: Events) -> Events:
        """Yield the events and make sure the run ends."""
        try:
            async with aclosing(course) as events:
                async for event in events:
                    yield event
        except AgentError as error:
            # A failed run keeps what was said so far; at a limit, that isn't the answer yet.
            said = self.heard.said if self.heard and not isinstance(error, LimitReached) else ()
            yield error_event(self.trail, error)
            yield finish_event(
                self.trail,
                stop_reason(error),
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
        inspect = rules.without_length_limits().inspect if is_nested else rules.inspect
        query = self.trail.query
        inspected = await run_in_thread_if_large(len(query), inspect, query, "input")
        # The first event has everything needed to continue, should the run be interrupted after
        # it.
        is_masked = inspected.text != query and not inspected.is_blocked
        masked = {"text": inspected.text} if is_masked else {}
        for finding in inspected.findings:
            yield guardrail_event(self.trail, finding, **masked)
            masked = {}
        if inspected.is_blocked:
            detail = inspected.result.reason
            yield finish_event(self.trail, StopReason.BLOCKED, detail=detail)
            return
        if is_masked:
            self.trail.replace_query(inspected.text)
        async with aclosing(self._turns()) as turns:
            async for event in turns:
                yield event

    async def _resume_turn(self) -> Events:
        """Close what was started, then continue as usual."""
        trail, cut = self.trail, self.trail.cut
        if trail.emit.parent is None and trail.past[-1].type is not EventType.APPROVAL_RESOLVED:
            yield resume_event(trail)
        for event in close_interrupted_calls(trail):
            yield event
        mark_uncertain_calls(trail, self.agent.tools)
        if not cut.is_checked:
            course = self._checked()
        elif trail.open and cut.is_decided:
            course = self._run_tools()
        else:
            course = self._resume_decision()
        async with aclosing(course) as events:
            async for event in events:
                yield event
        async with aclosing(self._turns()) as turns:
            async for event in turns:
                yield event

    async def _resume_decision(self) -> Events:
        """Continue with the decision of the model, a guardrail or an error, if any."""
        trail, cut = self.trail, self.trail.cut
        if cut.finding is not None:
            yield finish_event(self.trail, StopReason.BLOCKED, detail=cut.finding["reason"])
        elif cut.error is not None:
            detail, advice = cut.error["message"], cut.error["advice"]
            yield finish_event(
                self.trail,
                StopReason(cut.error.get("stopped_reason", StopReason.ERROR)),
                answer="" if _is_limit_error(cut.error) else "".join(cut.words),
                detail=detail,
                advice=advice,
            )
        elif trail.open or cut.answer is not None:
            async with aclosing(self._apply_decision(last_plan(trail))) as deciding:
                async for event in deciding:
                    yield event

    async def _turns(self) -> Events:
        while not self.trail.is_over and self.trail.turn < self.agent.max_steps:
            self.trail.turn += 1
            async with aclosing(self._run_turn()) as turn:
                async for event in turn:
                    yield event
        if not self.trail.is_over:
            raise MaxStepsExceeded(_no_answer_message(self.agent.max_steps))

    async def _run_turn(self) -> Events:
        output, tools = self.agent.output, self.toolbox.offered()
        if output is not None and not tools:
            async with aclosing(self._format_output(output)) as shaping:
                async for event in shaping:
                    yield event
            return
        heard = self._model_call(self.trail.next_step())
        try:
            async with aclosing(self.thinking.events(heard, tools)) as words:
                async for event in words:
                    yield event
        except PlanParseError as error:
            if self.trail.repairs >= MAX_REPAIRS:
                raise
            for event in self.thinking.repair_events(heard, error):
                yield event
            return
        for finding in heard.findings:
            yield guardrail_event(self.trail, finding)
        if heard.finding is not None:
            yield finish_event(self.trail, StopReason.BLOCKED, detail=heard.finding.reason)
            return
        async with aclosing(self._apply_decision(heard.plan or PlanResult())) as deciding:
            async for event in deciding:
                yield event

    async def _apply_decision(self, plan: PlanResult) -> Events:
        output = self.agent.output
        match self._decision(plan):
            case ContinueWithTools(calls):
                self._keep_allowed_calls(plan, calls)
                async with aclosing(self._run_tools()) as acting:
                    async for event in acting:
                        yield event
            case TerminateWithOutput(text) if output is not None:
                async with aclosing(self._format_output(output, text)) as shaping:
                    async for event in shaping:
                        yield event
            case TerminateWithOutput(text):
                for event in await self._conclude(plan, text):
                    yield event
            case TerminateImmediately(reason, detail):
                if reason in ERRORS:
                    raise ERRORS[reason](detail)
                yield finish_event(self.trail, reason, detail=detail)

    def _decision(self, plan: PlanResult) -> Decision:
        decision = self.agent.policy.decide(plan, self.trail.progress)
        spent = [budget.spent(self.trail.progress) for budget in self.trail.budgets]
        if any(spent) and isinstance(decision, ContinueWithTools | ContinueWithThinking):
            return TerminateImmediately(StopReason.BUDGET, next(filter(None, spent)))
        return decision

    async def _format_output(self, output: OutputSchema, words: str = "") -> Events:
        """Ask for the structured answer, with tools off."""
        phase = OutputStep(output, self.trail, self._model_call, self.thinking.recorded, words)
        async with aclosing(phase.events()) as events:
            async for event in events:
                yield event
        for finding in phase.findings:
            yield guardrail_event(self.trail, finding)
        if phase.finding is not None:
            yield finish_event(self.trail, StopReason.BLOCKED, detail=phase.finding.reason)
            return
        answer = phase.plan.final_answer or ""
        for event in await self._conclude(phase.plan, answer, output=phase.value):
            yield event

    def _model_call(self, step: int) -> ModelCall:
        agent = self.agent
        planner, *others = self._planners()
        kind = ModelCall if agent.output is None else ThoughtModelCall
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
        """The current model and its remaining fallbacks; a run never switches back."""
        if self.heard is not None:
            return [self.heard.planner, *self.heard.fallbacks]
        chain = [self.agent.planner, *self.agent.fallback_planners]
        names = [planner.model for planner in chain]
        return chain[names.index(self.trail.model) :] if self.trail.model in names else chain

    def _keep_allowed_calls(self, plan: PlanResult, calls: Sequence[ToolCall]) -> None:
        """Keep the calls of a turn that the policy allows."""
        pairs = zip(self.trail.open, plan.calls, strict=True)
        self.trail.open = tuple(call for call, wanted in pairs if wanted in calls)

    async def _run_tools(self) -> Events:
        acting = ToolStep(self.trail, self.toolbox, self.agent.asking, self.agent.guardrails)
        async with aclosing(acting.events()) as events:
            async for event in events:
                self.trail.is_over |= event.type is EventType.RUN_PAUSED
                yield event

    async def _conclude(
        self,
        plan: PlanResult,
        text: str,
        output: Any = None,
        guardrails: Guardrails | None = None,
    ) -> list[Event]:
        rules = guardrails or self.agent.guardrails
        inspected = await run_in_thread_if_large(len(text), rules.inspect, text, "output")
        told = {f.details["rule"] for f in self.heard.findings} if self.heard else set()
        new = [f for f in inspected.findings if f.details.get("rule") not in told]
        said = [guardrail_event(self.trail, finding) for finding in new]
        if inspected.is_blocked:
            detail = inspected.result.reason
            return [*said, finish_event(self.trail, StopReason.BLOCKED, detail=detail)]
        text = inspected.text
        self.state.add_message("assistant", text)
        self.state.add_step(AgentStep(thought=plan.thought))
        reason = StopReason.DEGRADED if self.toolbox.is_degraded else StopReason.COMPLETED
        detail = plan.turn.caveat
        return [
            *said,
            finish_event(self.trail, reason, answer=text, detail=detail, output=output),
        ]


def _is_limit_error(told: Data) -> bool:
    return issubclass(error_class(told["type"]), LimitReached)


def _no_answer_message(steps: int) -> str:
    return f"There was no answer after {steps} step{'' if steps == 1 else 's'}."
