"""One run of an agent, from the question to its end."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from agents.engine.errors import (
    AgentError,
    LimitReached,
    MaxStepsExceeded,
    QuotaExceeded,
    error_class,
)
from agents.engine.events import Event, EventFactory
from agents.engine.guardrails.checks import GuardrailResult, Guardrails
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState, AgentStep, Message
from agents.engine.tool import ToolRegistry
from agents.engine.tool_selection import CALL_TOOL
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn

from ..sentences import Sentence as _
from .capability import Answer
from .lifecycle_events import (
    error_event,
    finding_events,
    finish_event,
    start_event,
)
from .limit_step import LimitRequest, LimitStop, WrapUp
from .model_calls.model_call import ModelCall
from .model_calls.model_step import DraftCheck, ModelStep
from .model_calls.sampling import Sampler
from .output.figure_check import FigureCheck
from .output.output_schema import OutputSchema
from .output.output_step import OutputStep, ThoughtModelCall
from .recovery import last_plan, resume_events
from .run_limits import RunLimit
from .run_state import Data, RunState
from .screening.file_screening import screen_run_files
from .screening.message_screening import check_question, screen_answer, screen_history
from .termination import (
    ERRORS,
    BudgetPolicy,
    ContinueWithThinking,
    ContinueWithTools,
    StopReason,
    TerminateImmediately,
    TerminateWithOutput,
    due_limit,
    find_tool_limits,
    most_equal_calls,
    stop_reason,
)
from .tool_calls.approval import ApprovalPolicy, Grants
from .tool_calls.offered_tools import ToolBridge
from .tool_calls.tool_runner import ToolRunner
from .tool_calls.tool_step import ToolStep

MAX_IMPOSSIBLE_TURNS = 2

if TYPE_CHECKING:
    from .runtime import AgentRuntime

Events = AsyncGenerator[Event, None]


class Step(Protocol):
    """A part of a run; holds its result after its last event."""

    def events(self) -> Events: ...


@dataclass(slots=True)
class RunLoop:
    """One run of one agent: runs steps, each chosen by the result of the last one."""

    agent: "AgentRuntime"
    run_state: RunState
    tools: ToolRegistry = field(init=False)
    planners: list[ReActPlanner] = field(init=False)
    tool_runner: ToolRunner = field(init=False)
    approval_policy: ApprovalPolicy = field(init=False)
    bridge: ToolBridge | None = None
    model_call: ModelCall | None = None
    next_step: Step | None = None
    is_wrapping_up: bool = False
    # Whether a person wrote the calls, as in a workflow.
    has_written_calls: ClassVar[bool] = False

    def __post_init__(self) -> None:
        agent = self.agent
        agent.guardrails.model_checks.remember(self.run_state.recorded_events)
        if isinstance(agent.policy, BudgetPolicy):
            # Another agent's usage counts against its caller's budget.
            self.run_state.budgets = (*self.run_state.budgets, agent.policy)
        for planner in agent.planners:
            if planner.pseudonymizer is not None:
                planner.pseudonymizer.remember(self.run_state.replaced)

    @property
    def emit(self) -> EventFactory:
        return self.run_state.emit

    @property
    def state(self) -> AgentState:
        return self.run_state.state

    @property
    def is_start(self) -> bool:
        """Whether nothing has happened yet, and no other agent handed the task over."""
        return not self.run_state.recorded_events and self.run_state.emit.parent is None

    async def events(self) -> Events:
        """Run from the start or from an interruption, and make sure the run ends."""
        if self.run_state.is_over:
            return
        await self.prepare()
        if not self.run_state.recorded_events:
            yield self.start_event()
        try:
            for event in resume_events(self.run_state, self.tools):
                yield event
            for event in await self._first_events():
                yield event
            for hook in self.agent.hooks.before_run:
                for event in [] if self.run_state.is_over else await hook(self):
                    yield event
            while not self.run_state.is_over:
                step = self.next_step or self._choose_step()
                self.next_step = None
                async with aclosing(step.events()) as events:
                    async for event in events:
                        yield event
                for event in await self._follow_up(step):
                    yield event
        except AgentError as error:
            # A failed run keeps the output so far; at its own limit, that isn't the answer.
            is_own_limit = isinstance(error, LimitReached) and not isinstance(
                error, QuotaExceeded
            )
            call = None if is_own_limit else self.model_call
            failed = error_event(self.run_state, error)
            ended = finish_event(
                self.run_state,
                stop_reason(error),
                answer="".join(call.text_parts) if call and not call.holds_answer else "",
                detail=str(error),
                advice=error.advice,
            )
            yield failed
            yield ended
        finally:
            self.state.close_calls()

    async def prepare(self) -> None:
        """Set up the tools and the models of this run, as the capabilities want them."""
        agent = self.agent
        run_state = self.run_state
        self.tools = agent.tools
        for hook in agent.hooks.tools:
            self.tools = await hook(self, self.tools)
        if self.tools.has(CALL_TOOL):
            self.bridge = ToolBridge(self.tools)
        self.tool_runner = self.new_tool_runner(run_state)
        self.tool_runner.unavailable |= run_state.out_of_order
        self.tool_runner.is_degraded = run_state.is_degraded
        self.approval_policy = ApprovalPolicy(
            self.tools,
            agent.approvals,
            agent.find(Grants),
            is_written=self.has_written_calls,
        )
        self.planners = list(agent.planners)
        additions = [text for hook in agent.hooks.instructions for text in await hook(self)]
        if additions:
            self.planners = [planner.with_parts(additions) for planner in self.planners]
        names = [planner.model for planner in self.planners]
        if run_state.model in names:  # a run never switches back
            self.planners = self.planners[names.index(run_state.model) :]

    def new_tool_runner(self, run_state: RunState) -> ToolRunner:
        """Return what runs the tools of this run or of a part of it."""
        agent = self.agent
        return ToolRunner(
            self.tools,
            agent.fallback,
            auto_execute=agent.approvals.auto_execute,
            guardrails=agent.guardrails,
            attachments=agent.attachments,
            hooks=agent.hooks,
            claim_stand_in=partial(run_state.claim_stand_in, find_tool_limits(agent.policy)),
        )

    def start_event(self) -> Event:
        return start_event(
            self.run_state,
            self.planners[0],
            self.tool_runner.sent_tools(),
            self.agent.max_steps,
            sorted(self.tools.unsent),
        )

    def add_note(self, note: Data) -> None:
        """Say with the first request what it contains and why; what that used is counted."""
        if not self.is_start:
            return
        self.run_state.notes.append(note)
        if usage := note.get("usage"):
            self.run_state.progress.used.add(dict(usage))

    def open_with(self, call: ToolCall) -> None:
        """Make this call before the first turn, without asking the model."""
        message = Turn().message([call])
        self.run_state.open = (call,)
        self.run_state.opening_tool = call.name
        self.run_state.say(message)
        self.next_step = self._tool_step(message)

    async def _first_events(self) -> list[Event]:
        """Check the query, or continue with the decision made before an interruption."""
        run_state = self.run_state
        interruption = self.run_state.interruption
        if not run_state.recorded_events:
            self.state.add_question(run_state.query)
        guardrails = self.agent.guardrails
        events = [] if interruption.is_checked else await check_question(run_state, guardrails)
        if not run_state.is_over:
            events += await screen_run_files(
                run_state, guardrails, is_new=not interruption.is_checked
            )
        if not run_state.is_over:
            events += await screen_history(
                run_state, guardrails, is_new=not interruption.is_checked
            )
        if not interruption.is_checked or run_state.is_over:
            return events
        if run_state.open and interruption.is_decided:
            self.next_step = self._tool_step()
        elif interruption.finding is not None:
            return [
                finish_event(
                    run_state, StopReason.BLOCKED, detail=interruption.finding["reason"]
                )
            ]
        elif interruption.error is not None:
            error = interruption.error
            is_limit = issubclass(error_class(error["type"]), LimitReached)
            return [
                finish_event(
                    run_state,
                    StopReason(error.get("stopped_reason", StopReason.ERROR)),
                    answer="" if is_limit else "".join(interruption.texts),
                    detail=error["message"],
                    advice=error["advice"],
                )
            ]
        elif run_state.open or interruption.answer is not None:
            return await self._apply_decision(last_plan(run_state))
        return []

    def _choose_step(self) -> Step:
        """Return the first step of a new turn; raise MaxStepsExceeded after the last one."""
        run_state = self.run_state
        agent = self.agent
        # A model that invents tools, or writes no JSON, is told once. Then it has to answer.
        can_call = len(run_state.impossible_turns) < MAX_IMPOSSIBLE_TURNS
        tools = self.tool_runner.sent_tools() if can_call else []
        # Without tools the next reply is the answer, which is never held up.
        if tools and (step := self._limit_step()) is not None:
            return step
        if run_state.turn >= agent.max_steps and not self.is_wrapping_up:
            if agent.max_steps == 1:
                raise MaxStepsExceeded(_("No answer after 1 step."))
            raise MaxStepsExceeded(_("No answer after %(steps)s steps.", steps=agent.max_steps))
        run_state.turn += 1
        if agent.output is not None and not tools:
            return self._output_step(agent.output)
        call = self._new_model_call(run_state.next_step())
        is_aloud = agent.output is not None
        return ModelStep(
            run_state,
            call,
            tools,
            is_aloud=is_aloud,
            bridge=self.bridge,
            check_draft=self._draft_check(),
            must_answer=self._must_answer(),
        )

    def _must_answer(self) -> bool:
        """Whether this turn's schema has no calls.

        A weak model makes them for as long as it can, and never ends one that got too long.
        """
        if self.run_state.repairs or 1 < self.agent.max_steps == self.run_state.turn:
            return True
        calls = [(step.action, step.action_input) for step in self.state.get_steps()]
        most = most_equal_calls(self.agent.policy)
        return bool(calls) and most is not None and calls.count(calls[-1]) >= most

    def _draft_check(self) -> DraftCheck | None:
        """Return the check of a draft's figures, if a turn is left to correct them."""
        check = self.agent.find(FigureCheck)
        run_state = self.run_state
        has_turn = run_state.turn < self.agent.max_steps and not self.is_wrapping_up
        if check is None or not has_turn or run_state.has_returned_draft:
            return None

        def unsupported(call: ModelCall, draft: str) -> list[str]:
            if self.due_limit() is not None:
                return []
            return check.unsupported(run_state, call.request, draft, run_state.emit.clock.now())

        return unsupported

    async def _follow_up(self, step: Step) -> list[Event]:
        """Act on a step's result: return the final events, or set `next_step`."""
        match step:
            case ModelStep(call=call) if call.finding is not None:
                detail = call.finding.reason
                return [finish_event(self.run_state, StopReason.BLOCKED, detail=detail)]
            case ModelStep(plan=PlanResult() as plan):
                return await self._apply_decision(plan)
            case OutputStep(finding=GuardrailResult() as finding):
                detail = finding.reason
                return [finish_event(self.run_state, StopReason.BLOCKED, detail=detail)]
            case OutputStep(plan=plan, value=value):
                return await self._conclude(plan, plan.final_answer or "", output=value)
        return []

    async def _apply_decision(self, plan: PlanResult) -> list[Event]:
        """Act on what the policy decides, and on a limit that lets nothing more start."""
        decision = self.agent.policy.decide(plan, self.run_state.progress)
        limit = self.due_limit()
        if limit is not None and isinstance(decision, ContinueWithTools | ContinueWithThinking):
            self.next_step = self._limit_step()
            if self.next_step is not None:
                return []
            decision = TerminateImmediately(StopReason.BUDGET, limit.message)
        output = self.agent.output
        match decision:
            case ContinueWithTools(allowed_calls):
                open_calls = zip(self.run_state.open, plan.calls, strict=True)
                self.run_state.open = tuple(
                    call for call, planned in open_calls if planned in allowed_calls
                )
                self.next_step = self._tool_step()
            case TerminateWithOutput(text) if output is not None:
                self.next_step = self._output_step(output, text)
            case TerminateWithOutput(text):
                return await self._conclude(plan, text)
            case TerminateImmediately(reason, detail):
                if reason in ERRORS:
                    raise ERRORS[reason](detail)
                return [finish_event(self.run_state, reason, detail=detail)]
        return []

    def due_limit(self) -> RunLimit | None:
        """Return the limit that lets nothing more start, of this agent or its callers."""
        return due_limit(self.run_state.budgets, self.run_state.progress)

    def _limit_step(self) -> Step | None:
        """Return the step for a limit that a person decides about, if one is due."""
        run_state = self.run_state
        limit = self.due_limit()
        if limit is None or self.is_wrapping_up:
            return None
        if limit.asks:
            return LimitRequest(run_state, limit)
        if limit.ending == "stop":
            return LimitStop(run_state, limit)
        return self._wrap_up() if limit.ending == "finish" else None

    def _wrap_up(self) -> Step:
        """Let the model answer with what there is, without tools."""
        self.is_wrapping_up = True
        was_degraded = self.tool_runner.is_degraded
        self.tool_runner = ToolRunner(ToolRegistry(), self.agent.fallback)
        self.tool_runner.is_degraded = was_degraded
        return WrapUp(self.run_state)

    def _tool_step(self, opening: Message | None = None) -> ToolStep:
        agent = self.agent
        return ToolStep(
            self.run_state,
            self.tool_runner,
            self.approval_policy,
            agent.guardrails,
            Sampler(agent, self.run_state),
            opening,
        )

    def _output_step(self, output: OutputSchema, draft_answer: str = "") -> OutputStep:
        """Ask for the structured answer, with tools off."""
        return OutputStep(output, self.run_state, self._new_model_call, draft_answer)

    def _new_model_call(self, step: int) -> ModelCall:
        agent = self.agent
        if self.model_call is not None:  # a run never switches back
            self.planners = [self.model_call.planner, *self.model_call.fallbacks]
        kind = ModelCall if agent.output is None else ThoughtModelCall
        self.model_call = kind(
            self.planners,
            agent.guardrails,
            agent.fallback,
            self.emit,
            step,
            attachments=agent.attachments,
            work_time=self.run_state.progress.time,
            handler=agent.model_handler,
        )
        return self.model_call

    async def _conclude(
        self,
        plan: PlanResult,
        text: str,
        output: Any = None,
        guardrails: Guardrails | None = None,
    ) -> list[Event]:
        """Check the answer and finish the run with it, or without it if it is blocked."""
        run_state = self.run_state
        agent = self.agent
        findings = self.model_call.findings if self.model_call else ()
        screened = await screen_answer(
            run_state,
            guardrails or agent.guardrails,
            text,
            {f.details["rule"] for f in findings},
        )
        events = list[Event]()
        for finding in screened.findings:
            events += finding_events(run_state, finding)
        if screened.blocked is not None:
            detail = screened.blocked.reason
            return [*events, finish_event(run_state, StopReason.BLOCKED, detail=detail)]
        answer = Answer(screened.text, output)
        for hook in agent.hooks.after_run:
            events += await hook(self, answer)
        self.state.add_message("assistant", answer.text)
        self.state.add_step(AgentStep(thought=plan.thought))
        reason = StopReason.DEGRADED if self.tool_runner.is_degraded else StopReason.COMPLETED
        limit = self.due_limit() if self.is_wrapping_up else None
        detail = plan.turn.caveat if limit is None else limit.message
        return [
            *events,
            finish_event(
                run_state, reason, answer=answer.text, detail=detail, output=answer.output
            ),
        ]
