"""One run of an agent, from the question to its end."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from agents.engine.errors import (
    AgentError,
    LimitReached,
    MaxStepsExceeded,
    QuotaExceeded,
    error_class,
)
from agents.engine.events import Event, EventFactory
from agents.engine.guardrails.checks import GuardrailResult, Guardrails
from agents.engine.material import CitationCheck
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState, AgentStep, Message
from agents.engine.tool import ToolRegistry
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn

from .answer_citations import check_final, citation_events
from .compaction import HistoryCompactor, compact_history
from .file_screening import screen_run_files
from .first_retrieval import retrieval_call
from .lifecycle_events import (
    error_event,
    finding_events,
    finish_event,
    start_event,
)
from .limit_step import LimitRequest, LimitStop, WrapUp
from .message_screening import check_question, screen_answer, screen_history
from .model_call import ModelCall
from .model_step import ModelStep
from .offered_tools import OfferedTools
from .output_schema import OutputSchema
from .output_step import OutputStep, ThoughtModelCall
from .recovery import last_plan, resume_events
from .run_limits import RunLimit
from .run_state import Data, RunState
from .sampling import Sampler
from .termination import (
    ERRORS,
    BudgetPolicy,
    ContinueWithThinking,
    ContinueWithTools,
    Decision,
    StopReason,
    TerminateImmediately,
    TerminateWithOutput,
    due_limit,
    find_tool_limits,
    stop_reason,
)
from .tool_runner import ToolRunner
from .tool_step import ToolStep

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
    tool_runner: ToolRunner = field(init=False)
    model_call: ModelCall | None = None
    next_step: Step | None = None
    is_wrapping_up: bool = False
    offered: OfferedTools = field(init=False)

    def __post_init__(self) -> None:
        agent = self.agent
        self.tool_runner = ToolRunner(
            agent.tools,
            agent.fallback,
            circuits=agent.circuits,
            auto_execute=agent.approval_policy.auto_execute,
            guardrails=agent.guardrails,
            attachments=agent.attachments,
            spending=agent.spending,
            claim_stand_in=partial(
                self.run_state.claim_stand_in, find_tool_limits(agent.policy)
            ),
        )
        self.offered = OfferedTools(agent, self.run_state)
        agent.guardrails.model_checks.remember(self.run_state.recorded_events)
        self.tool_runner.unavailable |= self.run_state.out_of_order
        self.tool_runner.is_degraded = self.run_state.is_degraded
        if isinstance(agent.policy, BudgetPolicy):
            # Another agent's usage counts against its caller's budget.
            self.run_state.budgets = (*self.run_state.budgets, agent.policy)
        for planner in (agent.planner, *agent.fallback_planners):
            if planner.pseudonymizer is not None:
                planner.pseudonymizer.remember(self.run_state.replaced)

    @property
    def emit(self) -> EventFactory:
        return self.run_state.emit

    @property
    def state(self) -> AgentState:
        return self.run_state.state

    async def events(self) -> Events:
        """Run from the start or from an interruption, and make sure the run ends."""
        if self.run_state.is_over:
            return
        await self.select_tools()
        if not self.run_state.recorded_events:
            yield self.start_event()
        try:
            for event in resume_events(self.run_state, self.agent.tools):
                yield event
            for event in await self._first_events():
                yield event
            await self._prepare_history()
            while not self.run_state.is_over:
                step, self.next_step = self.next_step or self._choose_step(), None
                async with aclosing(step.events()) as events:
                    async for event in events:
                        yield event
                for event in await self._follow_up(step):
                    yield event
        except AgentError as error:
            for event in self._failure_events(error):
                yield event
        finally:
            self.state.close_calls()

    def start_event(self) -> Event:
        agent, tools = self.agent, self.offered.tools(self.tool_runner)
        unsent = sorted(self.tool_runner.unsent)
        return start_event(self.run_state, agent.planner, tools, agent.max_steps, unsent)

    async def select_tools(self) -> None:
        """Choose the tools that the model is sent, if there are too many for all of them."""
        if self.agent.tool_selector is not None:
            await self.offered.select(self.agent.tool_selector, self.tool_runner)

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
            return events if run_state.is_over else [*events, *self._retrieve_first()]
        if run_state.open and interruption.is_decided:
            self.next_step = self._tool_step()
        elif interruption.finding is not None:
            return [
                finish_event(
                    run_state, StopReason.BLOCKED, detail=interruption.finding["reason"]
                )
            ]
        elif interruption.error is not None:
            return [self._resume_error(interruption.error)]
        elif run_state.open or interruption.answer is not None:
            return await self._apply_decision(last_plan(run_state))
        else:
            return self._retrieve_first()
        return []

    def _retrieve_first(self) -> list[Event]:
        """Search for the question before the first turn, if the agent wants it."""
        run_state, name = self.run_state, self.agent.retrieval_tool
        is_new = run_state.turn == 0 and not run_state.progress.total()
        if not name or not is_new or not self.agent.tools.has(name):
            return []
        call = retrieval_call(run_state, name)
        # A search that a person must approve is left to the model.
        if json.loads(call.arguments)["query"] and not self.agent.approval_policy.why(call):
            message = Turn().message([call])
            run_state.open = (call,)
            run_state.say(message)
            self.next_step = self._tool_step(message)
        return []

    async def _prepare_history(self) -> None:
        """Before the first turn, note what the request contains and shorten the history."""
        run_state, limits = self.run_state, self.agent.history_limits
        if run_state.turn or run_state.is_over or run_state.emit.parent is not None:
            return
        if not run_state.recorded_events:
            run_state.notes += self.agent.notes
            for used in (note["usage"] for note in self.agent.notes if note.get("usage")):
                run_state.progress.used.add(dict(used))
        if limits is None or len(self.state.get_messages()) < 3:
            return
        compactor = HistoryCompactor(
            limits, self._planners(), self.agent.guardrails, self.agent.circuits
        )
        await compact_history(run_state, compactor, self.offered.tools(self.tool_runner))

    def _resume_error(self, error: Data) -> Event:
        return finish_event(
            self.run_state,
            StopReason(error.get("stopped_reason", StopReason.ERROR)),
            answer="" if _is_limit_error(error) else "".join(self.run_state.interruption.texts),
            detail=error["message"],
            advice=error["advice"],
        )

    def _failure_events(self, error: AgentError) -> list[Event]:
        # A failed run keeps the output so far; at its own limit, that isn't the answer.
        is_own_limit = isinstance(error, LimitReached) and not isinstance(error, QuotaExceeded)
        call = None if is_own_limit else self.model_call
        event = error_event(self.run_state, error)
        ended = finish_event(
            self.run_state,
            stop_reason(error),
            answer="".join(call.text_parts) if call and not call.holds_answer else "",
            detail=str(error),
            advice=error.advice,
        )
        return [event, ended]

    def _choose_step(self) -> Step:
        """Return the first step of a new turn; raise MaxStepsExceeded after the last one."""
        run_state, agent = self.run_state, self.agent
        tools = self.offered.tools(self.tool_runner)
        # Without tools the next reply is the answer, which is never held up.
        if tools and (step := self._limit_step()) is not None:
            return step
        if run_state.turn >= agent.max_steps and not self.is_wrapping_up:
            raise MaxStepsExceeded(_no_answer_message(agent.max_steps))
        run_state.turn += 1
        if agent.output is not None and not tools:
            return self._output_step(agent.output)
        call = self._new_model_call(run_state.next_step())
        is_aloud = agent.output is not None
        return ModelStep(run_state, call, tools, is_aloud=is_aloud, bridge=self.offered.bridge)

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
        output = self.agent.output
        match self._decision(plan):
            case ContinueWithTools(calls):
                self._keep_allowed_calls(plan, calls)
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

    def _decision(self, plan: PlanResult) -> Decision:
        decision = self.agent.policy.decide(plan, self.run_state.progress)
        limit = self.due_limit()
        if limit is None or not isinstance(decision, ContinueWithTools | ContinueWithThinking):
            return decision
        self.next_step = self._limit_step()
        if self.next_step is not None:
            return ContinueWithThinking()
        return TerminateImmediately(StopReason.BUDGET, limit.message)

    def due_limit(self) -> RunLimit | None:
        """Return the limit that lets nothing more start, of this agent or its callers."""
        return due_limit(self.run_state.budgets, self.run_state.progress)

    def _limit_step(self) -> Step | None:
        """Return the step for a limit that a person decides about, if one is due."""
        run_state, limit = self.run_state, self.due_limit()
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
            agent.approval_policy,
            agent.guardrails,
            Sampler(agent, self.run_state),
            opening,
        )

    def _output_step(self, output: OutputSchema, draft_answer: str = "") -> OutputStep:
        """Ask for the structured answer, with tools off."""
        return OutputStep(output, self.run_state, self._new_model_call, draft_answer)

    def _new_model_call(self, step: int) -> ModelCall:
        agent = self.agent
        planner, *others = self._planners()
        kind = ModelCall if agent.output is None else ThoughtModelCall
        self.model_call = kind(
            planner,
            agent.guardrails,
            agent.retry,
            self.emit,
            step,
            fallbacks=others,
            circuits=agent.circuits,
            attachments=agent.attachments,
            holds_answer=agent.guardrails.model_checks.holds_answer(),
            work_time=self.run_state.progress.time,
        )
        return self.model_call

    def _planners(self) -> list[ReActPlanner]:
        """The current model and its remaining fallbacks; a run never switches back."""
        if self.model_call is not None:
            return [self.model_call.planner, *self.model_call.fallbacks]
        planners = [self.agent.planner, *self.agent.fallback_planners]
        names = [planner.model for planner in planners]
        return (
            planners[names.index(self.run_state.model) :]
            if self.run_state.model in names
            else planners
        )

    def _keep_allowed_calls(self, plan: PlanResult, calls: Sequence[ToolCall]) -> None:
        """Keep the calls of a turn that the policy allows."""
        pairs = zip(self.run_state.open, plan.calls, strict=True)
        self.run_state.open = tuple(call for call, wanted in pairs if wanted in calls)

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
        checked = CitationCheck(screened.text)
        if agent.cites:
            checked, output = check_final(run_state, screened.text, output, agent.output)
        events += citation_events(run_state, checked, output)
        text = checked.text
        self.state.add_message("assistant", text)
        self.state.add_step(AgentStep(thought=plan.thought))
        reason = StopReason.DEGRADED if self.tool_runner.is_degraded else StopReason.COMPLETED
        limit = self.due_limit() if self.is_wrapping_up else None
        detail = plan.turn.caveat if limit is None else limit.message
        return [
            *events,
            finish_event(self.run_state, reason, answer=text, detail=detail, output=output),
        ]


def _is_limit_error(data: Data) -> bool:
    return issubclass(error_class(data["type"]), LimitReached)


def _no_answer_message(steps: int) -> str:
    return "No answer after 1 step." if steps == 1 else f"No answer after {steps} steps."
