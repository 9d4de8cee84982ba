"""Think, act, look, until there is an answer: the loop, as a stream of events."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .acting import Acting, distinct
from .approval import Asking
from .breaker import Circuits
from .errors import AgentError, PlanParseError
from .events import Event, Stamp, Type
from .fallback import FallbackStrategy
from .guardrails import GuardrailAction, GuardrailResult, Guardrails
from .listening import Listening
from .output import OutputSchema
from .phases import OutputPhase, ThinkingAloud
from .planner import ReActPlanner, Request
from .retry import RetryPolicy
from .state import OBSERVATION, AgentState, AgentStep, Message
from .termination import (
    ContinueWithTools,
    StopReason,
    TerminateImmediately,
    TerminateWithOutput,
    TerminationPolicy,
    standard_policy,
)
from .tool import ToolRegistry, specification
from .toolbox import Toolbox
from .trail import Trail, retrace
from .turn import PlanResult, ToolCall
from .usage import of_turn

MOST_REPAIRS = 2
CUT_OFF = "The answer was cut off at the output limit of the model."
WAITING = "waiting"


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
        auto_execute_tools: bool = True,
        output: OutputSchema | None = None,
        fallback_planners: Sequence[ReActPlanner] = (),
        circuits: Circuits | None = None,
        name: str = "agent",
    ) -> None:
        self.planner = planner
        self.tools = tool_registry
        self.guardrails = guardrails
        self.fallback = fallback_strategy
        self.max_steps = max_steps
        self.policy = policy or standard_policy()
        self.retry = retry or RetryPolicy()
        self.output = output
        self.asking = Asking(tool_registry, auto_execute_tools)
        self.fallback_planners = tuple(fallback_planners)
        self.circuits = circuits
        self.name = name

    async def run(self, query: str, state: AgentState | None = None) -> AgentResult:
        """Ask, and wait for the end, or for the moment in which a person has to be asked."""
        state = state or AgentState()
        async for event in self.stream(query, state):
            last = event
        return AgentResult(
            answer=last.data.get("answer", ""),
            steps=state.get_steps(),
            tool_calls=last.data.get("tool_calls", 0),
            stopped_reason=last.data.get("stopped_reason", WAITING),
        )

    def stream(self, query: str, state: AgentState | None = None) -> Events:
        """Ask, and watch. The last event is `run_finished`, or `run_paused` where it waits."""
        return self.begin(Trail.start(self.name, query, state))

    def resume(self, events: Sequence[Event], history: AgentState | None = None) -> Events:
        """Go on where these events ended; `history` is what was said before the run."""
        return self.go_on(retrace(events, Stamp(self.name), history or AgentState()))

    def begin(self, trail: Trail) -> Events:
        return _Course(self, trail).begin()

    def go_on(self, trail: Trail) -> Events:
        return _Course(self, trail).go_on()


@dataclass(slots=True)
class _Course:
    """The course of one run."""

    agent: AgentRuntime
    trail: Trail
    toolbox: Toolbox = field(init=False)
    heard: Listening | None = None

    def __post_init__(self) -> None:
        agent = self.agent
        self.toolbox = Toolbox(
            agent.tools,
            agent.fallback,
            circuits=agent.circuits,
            auto_execute=agent.asking.auto_execute,
        )
        self.toolbox.out_of_order |= self.trail.out_of_order
        self.toolbox.is_degraded = self.trail.is_degraded

    @property
    def emit(self) -> Stamp:
        return self.trail.emit

    @property
    def state(self) -> AgentState:
        return self.trail.state

    async def begin(self) -> Events:
        yield self._started()
        async with aclosing(self._watched(self._first_turn())) as events:
            async for event in events:
                yield event

    async def go_on(self) -> Events:
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
            yield self._failed(error)
            yield self._finished(
                StopReason.ERROR,
                answer="".join(self.heard.said if self.heard else ()),
                detail=str(error),
                advice=error.advice,
            )
        finally:
            self.state.close_calls()

    async def _first_turn(self) -> Events:
        query = self.trail.query
        finding = await asyncio.to_thread(self.agent.guardrails.check_input, query)
        if finding.action is not GuardrailAction.ALLOW:
            yield self._guarded(finding)
        if finding.action is GuardrailAction.BLOCK:
            yield self._finished(StopReason.BLOCKED, detail=finding.reason)
            return
        self.state.add_message("user", query)
        async with aclosing(self._turns()) as turns:
            async for event in turns:
                yield event

    async def _open_turn(self) -> Events:
        """What was decided meanwhile is done first; then everything goes on as ever."""
        async with aclosing(self._act()) as acting:
            async for event in acting:
                yield event
        async with aclosing(self._turns()) as turns:
            async for event in turns:
                yield event

    async def _turns(self) -> Events:
        while not self.trail.is_over and self.trail.turn < self.agent.max_steps:
            self.trail.turn += 1
            async with aclosing(self._take_turn()) as turn:
                async for event in turn:
                    yield event
        if not self.trail.is_over:
            yield self._finished(
                StopReason.MAX_STEPS,
                detail=f"There was no answer after {self.agent.max_steps} steps.",
            )

    async def _take_turn(self) -> Events:
        output = self.agent.output
        if output is not None and not self.toolbox.offered():
            async with aclosing(self._shape(output)) as shaping:
                async for event in shaping:
                    yield event
            return
        heard = self._listen(self.trail.next_step())
        try:
            async with aclosing(self._think(heard)) as thinking:
                async for event in thinking:
                    yield event
        except PlanParseError as error:
            if self.trail.repairs == MOST_REPAIRS:
                raise
            for event in self._ask_again(heard, error):
                yield event
            return
        if heard.finding is not None:
            yield self._guarded(heard.finding)
            yield self._finished(StopReason.BLOCKED, detail=heard.finding.reason)
            return
        plan = heard.plan or PlanResult()
        match self.agent.policy.decide(plan, self.trail.progress):
            case ContinueWithTools():
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
                yield self._finished(reason, detail=detail)

    async def _shape(self, output: OutputSchema, words: str = "") -> Events:
        """Tools are off from here: the answer is asked for in the form of its schema."""
        phase = OutputPhase(output, self.trail, self._listen, self._recorded, words)
        async with aclosing(phase.events()) as events:
            async for event in events:
                yield event
        if phase.finding is not None:
            yield self._guarded(phase.finding)
            yield self._finished(StopReason.BLOCKED, detail=phase.finding.reason)
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

    async def _act(self) -> Events:
        acting = Acting(self.trail, self.toolbox, self.agent.asking)
        async with aclosing(acting.events()) as events:
            async for event in events:
                self.trail.is_over |= event.type is Type.RUN_PAUSED
                yield event

    # Thinking

    async def _think(self, heard: Listening) -> Events:
        step, tools = self.trail.step, self.toolbox.offered()

        def ask(planner: ReActPlanner) -> Request:
            return planner.request(self.trail.query, self.state, tools)

        # In a thread, because counting the tokens of a long conversation takes a while.
        request = await asyncio.to_thread(ask, heard.planner)
        started = self.emit(
            Type.STEP_STARTED,
            step=step,
            turn=self.trail.turn,
            kind="thought",
            request=self._recorded(request, heard.planner),
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
        async with aclosing(heard.events(request, ask)) as words:
            async for event in words:
                yield event
        for event in self._thought(heard, started.time):
            yield event

    def _thought(self, heard: Listening, started: datetime) -> Iterator[Event]:
        plan, step = heard.plan or PlanResult(), self.trail.step
        sent = heard.request.messages if heard.request else self.trail.sent
        turn = of_turn(plan, sent, self.agent.guardrails.count_tokens)
        self.trail.progress.used.add(turn)
        yield self.emit(Type.USAGE, step=step, model=heard.planner.model, **turn)
        is_thought = bool(plan.calls) or self.agent.output is not None
        words = plan.final_answer if is_thought else None
        thought = "\n\n".join(filter(None, (plan.thought, words)))
        if is_thought:
            yield self.emit(Type.THOUGHT, step=step, content=thought)
        yield self.emit(
            Type.STEP,
            step=step,
            kind="thought" if is_thought else "answer",
            status="blocked" if heard.finding else "done",
            thought=thought,
            answer=plan.final_answer,
            finish_reason=plan.turn.finish_reason,
            started=started.isoformat(),
            **self._opened(plan, heard.planner),
        )

    def _opened(self, plan: PlanResult, planner: ReActPlanner) -> dict[str, Any]:
        """The calls of this turn are open now; they are kept so that a pause can end."""
        if not plan.calls:
            return {}
        calls = distinct(plan.calls, self.state.get_messages())
        message = planner.message(plan, calls)
        self.trail.open, self.trail.thought = calls, plan.thought
        self.trail.say(message)
        return {"messages": [message], "calls": [_plain(call) for call in calls]}

    def _ask_again(self, heard: Listening, error: PlanParseError) -> Iterator[Event]:
        """Show the model what it did wrong; it has the rest of its steps to do better."""
        self.trail.repairs += 1
        said = "".join(heard.said)
        messages: list[Message] = [
            {"role": "assistant", "content": said or "…"},
            {"role": "user", "content": f"{OBSERVATION}Error: {error}"},
        ]
        for message in messages:
            self.trail.say(message)
        if said:
            yield self.emit(Type.THOUGHT, step=self.trail.step, content=said)
        yield self.emit(
            Type.STEP,
            step=self.trail.step,
            kind="thought",
            status="failed",
            error=str(error),
            messages=messages,
        )

    def _recorded(self, request: Request, planner: ReActPlanner) -> dict[str, Any]:
        """The request as it is kept: what is new in it, and how much was there before."""
        kept = 0
        for old, new in zip(self.trail.sent, request.messages, strict=False):
            if old != new:
                break
            kept += 1
        self.trail.sent = request.messages
        names = [tool["function"]["name"] for tool in request.tools or ()]
        return {
            "model": planner.model,
            "kept": kept,
            "messages": request.messages[kept:],
            "tools": names,
            "parameters": dict(request.parameters),
        }

    # Ending

    async def _conclude(self, plan: PlanResult, text: str, output: Any = None) -> list[Event]:
        finding = await asyncio.to_thread(self.agent.guardrails.check_output, text)
        said = [] if finding.action is GuardrailAction.ALLOW else [self._guarded(finding)]
        if finding.action is GuardrailAction.BLOCK:
            return [*said, self._finished(StopReason.BLOCKED, detail=finding.reason)]
        self.state.add_message("assistant", text)
        self.state.add_step(AgentStep(thought=plan.thought))
        reason = StopReason.DEGRADED if self.toolbox.is_degraded else StopReason.COMPLETED
        detail = CUT_OFF if plan.turn.finish_reason == "length" else ""
        return [*said, self._finished(reason, answer=text, detail=detail, output=output)]

    def _started(self) -> Event:
        planner = self.agent.planner
        nested = self.emit.parent is not None
        return self.emit(
            Type.HANDOFF if nested else Type.RUN_STARTED,
            query=self.trail.query,
            path=list(self.trail.path),
            model=planner.model,
            dialect=planner.dialect,
            instructions=planner.instructions,
            tools=[specification(tool) for tool in self.toolbox.offered()],
            max_steps=self.agent.max_steps,
        )

    def _guarded(self, finding: GuardrailResult) -> Event:
        return self.emit(
            Type.GUARDRAIL,
            step=self.trail.next_step(),
            turn=self.trail.turn,
            action=finding.action.value,
            reason=finding.reason,
            details=finding.details,
        )

    def _failed(self, error: AgentError) -> Event:
        return self.emit(
            Type.ERROR,
            message=str(error),
            type=type(error).__name__,
            advice=error.advice,
            step=self.trail.step,
        )

    def _finished(
        self,
        reason: StopReason,
        *,
        answer: str = "",
        detail: str = "",
        advice: str = "",
        output: Any = None,
    ) -> Event:
        self.trail.is_over = True
        nested = self.emit.parent is not None
        return self.emit(
            Type.HANDOFF_RETURN if nested else Type.RUN_FINISHED,
            answer=answer,
            stopped_reason=reason.value,
            detail=detail,
            advice=advice,
            turns=self.trail.turn,
            tool_calls=self.trail.progress.total(),
            usage=self.trail.progress.used.to_dict(),
            output=output,
        )


def _plain(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
