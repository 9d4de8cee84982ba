"""Think, act, look, until there is an answer: the loop, as a stream of events."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from .errors import AgentError, PlanParseError
from .events import Event, Stamp, Type
from .fallback import FallbackResult, FallbackStrategy
from .guardrails import GuardrailAction, GuardrailResult, Guardrails
from .listening import Listening
from .planner import ReActPlanner, Request
from .retry import RetryPolicy
from .state import OBSERVATION, AgentState, AgentStep, Message
from .termination import (
    ContinueWithTools,
    Progress,
    StopReason,
    TerminateImmediately,
    TerminateWithOutput,
    TerminationPolicy,
    standard_policy,
)
from .tool import ToolRegistry, specification
from .toolbox import Toolbox
from .turn import PlanResult, ToolCall
from .usage import of_turn

MOST_REPAIRS = 2
MOST_OBSERVATION = 200_000
PREVIEW = 200
CUT_OFF = "The answer was cut off at the output limit of the model."


Events = AsyncGenerator[Event, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    answer: str
    steps: list[AgentStep]
    tool_calls: int
    stopped_reason: str


class AgentRuntime:
    """An agent ready to be asked. It keeps nothing of its own between two questions."""

    def __init__(
        self,
        planner: ReActPlanner,
        tool_registry: ToolRegistry,
        guardrails: Guardrails,
        fallback_strategy: FallbackStrategy,
        max_steps: int = 10,
        *,
        policy: TerminationPolicy | None = None,
        retry: RetryPolicy | None = None,
        name: str = "agent",
    ) -> None:
        self.planner = planner
        self.tools = tool_registry
        self.guardrails = guardrails
        self.fallback = fallback_strategy
        self.max_steps = max_steps
        self.policy = policy or standard_policy()
        self.retry = retry or RetryPolicy()
        self.name = name

    async def run(self, query: str, state: AgentState | None = None) -> AgentResult:
        """Ask, and wait for the end."""
        state = state or AgentState()
        async for event in self.stream(query, state):
            last = event
        return AgentResult(
            answer=last.data["answer"],
            steps=state.get_steps(),
            tool_calls=last.data["tool_calls"],
            stopped_reason=last.data["stopped_reason"],
        )

    def stream(self, query: str, state: AgentState | None = None) -> Events:
        """Ask, and watch. The last event is always `run_finished`."""
        return _Course(self, query, state or AgentState()).events()


@dataclass(slots=True)
class _Course:
    """The course of one run."""

    agent: AgentRuntime
    query: str
    state: AgentState
    emit: Stamp = field(init=False)
    toolbox: Toolbox = field(init=False)
    progress: Progress = field(default_factory=Progress)
    turn: int = 0
    step: int = 0
    repairs: int = 0
    sent: list[Message] = field(default_factory=list)
    heard: Listening | None = None

    def __post_init__(self) -> None:
        self.emit = Stamp(self.agent.name)
        self.toolbox = Toolbox(self.agent.tools, self.agent.fallback)

    async def events(self) -> Events:
        yield self._started()
        try:
            async with aclosing(self._answer()) as answer:
                async for event in answer:
                    yield event
        except AgentError as error:
            yield self.emit(
                Type.ERROR,
                message=str(error),
                type=type(error).__name__,
                advice=error.advice,
                step=self.step,
            )
            yield self._finished(
                StopReason.ERROR,
                answer="".join(self.heard.said if self.heard else ()),
                detail=str(error),
                advice=error.advice,
            )
        finally:
            self.state.close_calls()

    async def _answer(self) -> Events:
        finding = await asyncio.to_thread(self.agent.guardrails.check_input, self.query)
        if finding.action is not GuardrailAction.ALLOW:
            yield self._guarded(finding)
        if finding.action is GuardrailAction.BLOCK:
            yield self._finished(StopReason.BLOCKED, detail=finding.reason)
            return
        self.state.add_message("user", self.query)
        while self.turn < self.agent.max_steps:
            self.turn += 1
            async with aclosing(self._take_turn()) as turn:
                async for event in turn:
                    yield event
                    if event.type is Type.RUN_FINISHED:
                        return
        yield self._finished(
            StopReason.MAX_STEPS,
            detail=f"There was no answer after {self.agent.max_steps} steps.",
        )

    async def _take_turn(self) -> Events:
        agent = self.agent
        self.step += 1
        heard = Listening(agent.planner, agent.guardrails, agent.retry, self.emit, self.step)
        self.heard = heard
        try:
            async with aclosing(self._think(heard)) as thinking:
                async for event in thinking:
                    yield event
        except PlanParseError as error:
            if self.repairs == MOST_REPAIRS:
                raise
            for event in self._ask_again(heard, error):
                yield event
            return
        if heard.finding is not None:
            yield self._guarded(heard.finding)
            yield self._finished(StopReason.BLOCKED, detail=heard.finding.reason)
            return
        plan = heard.plan or PlanResult()
        match self.agent.policy.decide(plan, self.progress):
            case ContinueWithTools(calls):
                async with aclosing(self._act(plan, calls)) as acting:
                    async for event in acting:
                        yield event
            case TerminateWithOutput(text):
                for event in await self._conclude(plan, text):
                    yield event
            case TerminateImmediately(reason, detail):
                yield self._finished(reason, detail=detail)

    # Thinking

    async def _think(self, heard: Listening) -> Events:
        step, tools = self.step, self.toolbox.offered()
        # In a thread, because counting the tokens of a long conversation takes a while.
        request = await asyncio.to_thread(
            self.agent.planner.request, self.query, self.state, tools
        )
        started = self.emit(
            Type.STEP_STARTED,
            step=step,
            turn=self.turn,
            kind="thought",
            request=self._recorded(request),
        )
        yield started
        if request.dropped or request.shortened:
            yield self.emit(
                Type.STATUS,
                kind="compaction",
                dropped=request.dropped,
                shortened=request.shortened,
                step=step,
            )
        async with aclosing(heard.events(request)) as words:
            async for event in words:
                yield event
        for event in self._thought(heard, started.time, step):
            yield event

    def _thought(self, heard: Listening, started: datetime, step: int) -> Iterator[Event]:
        plan = heard.plan or PlanResult()
        turn = of_turn(plan, self.sent, self.agent.guardrails.count_tokens)
        self.progress.used.add(turn)
        yield self.emit(Type.USAGE, step=step, **turn)
        if plan.calls:
            yield self.emit(Type.THOUGHT, step=step, content=plan.thought)
        yield self.emit(
            Type.STEP,
            step=step,
            kind="thought" if plan.calls else "answer",
            status="blocked" if heard.finding else "done",
            thought=plan.thought,
            answer=plan.final_answer,
            finish_reason=plan.turn.finish_reason,
            calls=[call.name for call in plan.calls],
            started=started.isoformat(),
        )

    def _ask_again(self, heard: Listening, error: PlanParseError) -> Iterator[Event]:
        """Show the model what it did wrong; it has the rest of its steps to do better."""
        self.repairs += 1
        self.state.add_message("assistant", "".join(heard.said) or "…")
        self.state.add_message("user", f"{OBSERVATION}Error: {error}")
        if heard.said:
            yield self.emit(Type.THOUGHT, step=self.step, content="".join(heard.said))
        yield self.emit(
            Type.STEP, step=self.step, kind="thought", status="failed", error=str(error)
        )

    def _recorded(self, request: Request) -> dict[str, Any]:
        """The request as it is kept: what is new in it, and how much was there before."""
        kept = 0
        for old, new in zip(self.sent, request.messages, strict=False):
            if old != new:
                break
            kept += 1
        self.sent = request.messages
        names = [tool["function"]["name"] for tool in request.tools or ()]
        return {
            "model": self.agent.planner.model,
            "kept": kept,
            "messages": request.messages[kept:],
            "tools": names,
            "parameters": dict(request.parameters),
        }

    # Acting and looking

    async def _act(self, plan: PlanResult, calls: tuple[ToolCall, ...]) -> Events:
        calls = self._unique(calls)
        said = plan.thought if self.agent.planner.dialect == "react" else plan.turn.content
        self.state.add_message(
            "assistant", said or None, tool_calls=[call.wire() for call in calls]
        )
        began = datetime.now(UTC)
        async with self.toolbox.side_by_side(calls) as begun:
            for call in calls:
                pending = begun.get(call.id)
                started = began if pending else datetime.now(UTC)
                async with aclosing(self._use(plan, call, pending, started)) as using:
                    async for event in using:
                        yield event

    async def _use(
        self,
        plan: PlanResult,
        call: ToolCall,
        pending: asyncio.Task[FallbackResult] | None,
        started: datetime,
    ) -> Events:
        self.step += 1
        self.progress.record(call)
        about: dict[str, Any] = {
            "step": self.step,
            "turn": self.turn,
            "started": started.isoformat(),
        }
        function = {"name": call.name, "arguments": call.arguments}
        yield self.emit(Type.TOOL_CALL, id=call.id, function=function, **about)
        outcome = await (pending or self.toolbox.use(call))
        observation = _shortened(outcome.result.text)
        self._observe(plan, call, observation)
        yield self.emit(
            Type.TOOL_RESPONSE,
            tool_call_id=call.id,
            name=call.name,
            content_preview=observation[:PREVIEW],
            content=observation,
            is_error=outcome.result.is_error,
            attempts=outcome.attempts,
            **about,
        )
        if outcome.degraded:
            yield self.emit(Type.STATUS, kind="degraded", tool=call.name, step=self.step)
        yield self.emit(
            Type.STEP,
            kind="tool",
            status="failed" if outcome.result.is_error else "done",
            thought=plan.thought,
            action=call.name,
            action_input=call.arguments,
            observation=observation[:PREVIEW],
            ended=outcome.ended.isoformat(),
            **about,
        )

    def _observe(self, plan: PlanResult, call: ToolCall, observation: str) -> None:
        self.state.add_message("tool", observation, tool_call_id=call.id)
        self.state.add_step(
            AgentStep(
                thought=plan.thought,
                action=call.name,
                action_input=call.readable,
                observation=observation,
            )
        )

    def _unique(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        """An id that two calls share would join a result to the wrong one."""
        messages = self.state.get_messages()
        taken = {made["id"] for m in messages for made in m.get("tool_calls") or ()} | {"react"}
        unique: list[ToolCall] = []
        for call in calls:
            is_taken = call.id in taken
            unique.append(replace(call, id=f"call_{uuid4().hex[:12]}") if is_taken else call)
            taken.add(unique[-1].id)
        return tuple(unique)

    # Ending

    async def _conclude(self, plan: PlanResult, text: str) -> list[Event]:
        finding = await asyncio.to_thread(self.agent.guardrails.check_output, text)
        said = [] if finding.action is GuardrailAction.ALLOW else [self._guarded(finding)]
        if finding.action is GuardrailAction.BLOCK:
            return [*said, self._finished(StopReason.BLOCKED, detail=finding.reason)]
        self.state.add_message("assistant", text)
        self.state.add_step(AgentStep(thought=plan.thought))
        reason = StopReason.DEGRADED if self.toolbox.is_degraded else StopReason.COMPLETED
        detail = CUT_OFF if plan.turn.finish_reason == "length" else ""
        return [*said, self._finished(reason, answer=text, detail=detail)]

    def _started(self) -> Event:
        planner = self.agent.planner
        return self.emit(
            Type.RUN_STARTED,
            query=self.query,
            model=planner.model,
            dialect=planner.dialect,
            instructions=planner.instructions,
            tools=[specification(tool) for tool in self.toolbox.offered()],
            max_steps=self.agent.max_steps,
        )

    def _guarded(self, finding: GuardrailResult) -> Event:
        self.step += 1
        return self.emit(
            Type.GUARDRAIL,
            step=self.step,
            turn=self.turn,
            action=finding.action.value,
            reason=finding.reason,
            details=finding.details,
        )

    def _finished(
        self, reason: StopReason, *, answer: str = "", detail: str = "", advice: str = ""
    ) -> Event:
        return self.emit(
            Type.RUN_FINISHED,
            answer=answer,
            stopped_reason=reason.value,
            detail=detail,
            advice=advice,
            turns=self.turn,
            tool_calls=self.progress.total(),
            usage=self.progress.used.to_dict(),
        )


def _shortened(text: str) -> str:
    if len(text) <= MOST_OBSERVATION:
        return text
    cut = len(text) - MOST_OBSERVATION
    return f"{text[:MOST_OBSERVATION]}\n[… {cut:,} more characters were cut]"
