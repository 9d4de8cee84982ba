"""Think, act, look, until there is an answer: the loop, as a stream of events."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .errors import AgentError, PlanParseError, ToolNotFoundError
from .events import Event, Stamp, Type
from .fallback import FallbackResult, FallbackStrategy
from .guardrails import GuardrailAction, GuardrailResult, Guardrails, Screen
from .planner import ReActPlanner, Request, Said
from .state import AgentState, AgentStep, Message
from .termination import (
    CallHistory,
    ContinueWithTools,
    StopReason,
    TerminateImmediately,
    TerminateWithOutput,
    TerminationPolicy,
    standard_policy,
)
from .tool import ToolRegistry, ToolResult, specification
from .turn import PlanResult, ToolCall

MOST_REPAIRS = 2
MOST_OBSERVATION = 200_000
PREVIEW = 200


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
        name: str = "agent",
    ) -> None:
        self.planner = planner
        self.tools = tool_registry
        self.guardrails = guardrails
        self.fallback = fallback_strategy
        self.max_steps = max_steps
        self.policy = policy or standard_policy()
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
class _Totals:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def add(self, usage: dict[str, Any]) -> None:
        self.prompt_tokens += usage["prompt_tokens"]
        self.completion_tokens += usage["completion_tokens"]
        if usage.get("cost") is not None:
            self.cost = (self.cost or 0) + usage["cost"]

    def to_dict(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "cost": self.cost,
        }


@dataclass(slots=True)
class _Course:
    """The course of one run."""

    agent: AgentRuntime
    query: str
    state: AgentState
    emit: Stamp = field(init=False)
    history: CallHistory = field(default_factory=CallHistory)
    totals: _Totals = field(default_factory=_Totals)
    turn: int = 0
    step: int = 0
    repairs: int = 0
    sent: list[Message] = field(default_factory=list)
    out_of_order: set[str] = field(default_factory=set)
    degraded: bool = False
    plan: PlanResult | None = None
    finding: GuardrailResult | None = None

    def __post_init__(self) -> None:
        self.emit = Stamp(self.agent.name)

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
            yield self._finished(StopReason.ERROR, detail=str(error), advice=error.advice)
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
        try:
            async with aclosing(self._think()) as thinking:
                async for event in thinking:
                    yield event
        except PlanParseError as error:
            if self.repairs == MOST_REPAIRS:
                raise
            yield self._ask_again(error)
            return
        if self.finding is not None:
            yield self._guarded(self.finding)
            yield self._finished(StopReason.BLOCKED, detail=self.finding.reason)
            return
        assert self.plan is not None
        match self.agent.policy.decide(self.plan, self.history):
            case ContinueWithTools(calls):
                async with aclosing(self._act(self.plan, calls)) as acting:
                    async for event in acting:
                        yield event
            case TerminateWithOutput(text):
                for event in await self._conclude(self.plan, text):
                    yield event
            case TerminateImmediately(reason, detail):
                yield self._finished(reason, detail=detail)

    # Thinking

    async def _think(self) -> Events:
        self.step += 1
        self.plan = None
        step, tools = self.step, self._offered()
        request = self.agent.planner.request(self.query, self.state, tools)
        started = self.emit(
            Type.STEP_STARTED,
            step=step,
            turn=self.turn,
            kind="thought",
            request=self._recorded(request),
        )
        yield started
        screens = {k: self.agent.guardrails.screen_output() for k in ("thought", "answer")}
        async with aclosing(self.agent.planner.stream(request)) as words:
            async for piece in words:
                if isinstance(piece, PlanResult):
                    self.plan = piece
                elif text := self._screened(screens[piece.kind], piece):
                    yield self._said(piece.kind, text, step)
                if self.finding is not None:
                    break
        for kind, screen in screens.items():
            if text := screen.rest():
                yield self._said(kind, text, step)
        for event in self._thought(started.time, step):
            yield event

    def _thought(self, started: datetime, step: int) -> Iterator[Event]:
        plan = self.plan or PlanResult()
        usage = self._usage(plan)
        self.totals.add(usage)
        yield self.emit(Type.USAGE, step=step, **usage)
        if plan.calls:
            yield self.emit(Type.THOUGHT, step=step, content=plan.thought)
        yield self.emit(
            Type.STEP,
            step=step,
            kind="thought" if plan.calls else "answer",
            status="blocked" if self.finding else "done",
            thought=plan.thought,
            answer=plan.final_answer,
            finish_reason=plan.turn.finish_reason,
            calls=[call.name for call in plan.calls],
            started=started.isoformat(),
        )

    def _ask_again(self, error: PlanParseError) -> Event:
        """Show the model what it did wrong; it has the rest of its steps to do better."""
        self.repairs += 1
        self.state.add_message("user", f"Observation: Error: {error}")
        return self.emit(
            Type.STEP, step=self.step, kind="thought", status="failed", error=str(error)
        )

    def _screened(self, screen: Screen, piece: Said) -> str:
        text = screen.feed(piece.text)
        if screen.blocked:
            self.finding = screen.finding
        return text

    def _said(self, kind: str, text: str, step: int) -> Event:
        type = Type.DELTA if kind == "answer" else Type.THOUGHT_DELTA
        return self.emit(type, content=text, step=step)

    def _usage(self, plan: PlanResult) -> dict[str, Any]:
        """What the turn cost; counted by ourselves where the provider does not say."""
        usage = plan.turn.usage or {}
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        estimated = prompt is None or completion is None
        if estimated:
            count = self.agent.guardrails.count_tokens
            prompt = count(json.dumps(self.sent, ensure_ascii=False))
            completion = count(plan.thought + (plan.final_answer or ""))
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": (prompt or 0) + (completion or 0),
            "cost": usage.get("cost"),
            "estimated": estimated,
        }

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
        calls = tuple(self._unique(call, at) for at, call in enumerate(calls))
        self.state.add_message("assistant", plan.thought, tool_calls=list(map(_wire, calls)))
        for call in calls:
            async with aclosing(self._use(plan, call)) as using:
                async for event in using:
                    yield event

    async def _use(self, plan: PlanResult, call: ToolCall) -> Events:
        self.step += 1
        self.history.record(call)
        about: dict[str, Any] = {"step": self.step, "turn": self.turn}
        function = {"name": call.name, "arguments": call.arguments}
        called = self.emit(Type.TOOL_CALL, id=call.id, function=function, **about)
        yield called
        outcome = await self._execute(call)
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
            started=called.time.isoformat(),
            **about,
        )
        if outcome.degraded:
            yield self._give_up(call)
        elif not outcome.result.is_error:
            self.degraded = False
        yield self.emit(
            Type.STEP,
            kind="tool",
            status="failed" if outcome.result.is_error else "done",
            thought=plan.thought,
            action=call.name,
            action_input=call.arguments,
            observation=observation[:PREVIEW],
            started=called.time.isoformat(),
            **about,
        )

    async def _execute(self, call: ToolCall) -> FallbackResult:
        if call.name in self.out_of_order:
            return _refused(f"{call.name} is out of order. Answer without it.")
        try:
            tool = self.agent.tools.get(call.name)
            input = call.input
        except ToolNotFoundError as error:
            return _refused(str(error))
        except ValueError as error:
            return _refused(f"The arguments are not a JSON object: {error}")
        return await self.agent.fallback.execute_with_fallback(tool, input)

    def _observe(self, plan: PlanResult, call: ToolCall, observation: str) -> None:
        self.state.add_message("tool", observation, tool_call_id=call.id)
        self.state.add_step(
            AgentStep(
                thought=plan.thought,
                action=call.name,
                action_input=_readable(call),
                observation=observation,
            )
        )

    def _give_up(self, call: ToolCall) -> Event:
        """The tool is of no use now: go on without it, and say so in the end."""
        self.out_of_order.add(call.name)
        self.degraded = True
        return self.emit(Type.STATUS, kind="degraded", tool=call.name, step=self.step)

    def _offered(self) -> list[Any]:
        tools = self.agent.tools
        names = [name for name in tools.list_tools() if name not in self.out_of_order]
        return [tools.get(name) for name in names]

    def _unique(self, call: ToolCall, at: int) -> ToolCall:
        """Ids that two turns share would join a result to the wrong call."""
        taken = {
            made["id"]
            for message in self.state.get_messages()
            for made in message.get("tool_calls") or ()
        }
        if call.id not in taken and call.id != "react":
            return call
        return ToolCall(
            id=f"call_{self.turn}_{at + 1}", name=call.name, arguments=call.arguments
        )

    # Ending

    async def _conclude(self, plan: PlanResult, text: str) -> list[Event]:
        finding = await asyncio.to_thread(self.agent.guardrails.check_output, text)
        said = [] if finding.action is GuardrailAction.ALLOW else [self._guarded(finding)]
        if finding.action is GuardrailAction.BLOCK:
            return [*said, self._finished(StopReason.BLOCKED, detail=finding.reason)]
        self.state.add_message("assistant", text)
        self.state.add_step(AgentStep(thought=plan.thought))
        reason = StopReason.DEGRADED if self.degraded else StopReason.COMPLETED
        return [*said, self._finished(reason, answer=text)]

    def _started(self) -> Event:
        planner = self.agent.planner
        return self.emit(
            Type.RUN_STARTED,
            query=self.query,
            model=planner.model,
            dialect=planner.dialect,
            instructions=planner.instructions,
            tools=[specification(tool) for tool in self._offered()],
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
            tool_calls=self.history.total(),
            usage=self.totals.to_dict(),
        )


def _wire(call: ToolCall) -> dict[str, Any]:
    """The call as history keeps it; arguments nobody can read would break the next request."""
    try:
        arguments = json.dumps(call.input, ensure_ascii=False)
    except ValueError:
        arguments = "{}"
    function = {"name": call.name or "unknown", "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _readable(call: ToolCall) -> Any:
    try:
        return call.input
    except ValueError:
        return call.arguments


def _refused(error: str) -> FallbackResult:
    return FallbackResult(result=ToolResult(error=error, mendable=True))


def _shortened(text: str) -> str:
    if len(text) <= MOST_OBSERVATION:
        return text
    cut = len(text) - MOST_OBSERVATION
    return f"{text[:MOST_OBSERVATION]}\n[… {cut:,} more characters were cut]"
