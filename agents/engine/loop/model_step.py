"""One turn: builds the request, streams the reply and opens its tool calls."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

from agents.engine import fault_injection
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.errors import PlanParseError
from agents.engine.events import Event, EventType
from agents.engine.planner.react_planner import ModelRequest, ReActPlanner
from agents.engine.state import OBSERVATION_PREFIX, Message
from agents.engine.tool import Tool
from agents.engine.turn.assembly import PlanResult, ToolCall

from .handoff import Handoff
from .model_call import ModelCall
from .run_state import RunState
from .tool_fallback import effect
from .tool_step import with_unique_ids
from .usage import turn_usage

Events = AsyncGenerator[Event, None]


class ModelStep:
    """Yields a turn's events; the calls the model decided on are open afterwards.

    If the run has an output schema, streamed text is a thought: the answer comes later.
    """

    def __init__(self, trail: RunState, *, is_aloud: bool = False) -> None:
        self.trail = trail
        self.is_aloud = is_aloud

    async def events(self, heard: ModelCall, tools: Sequence[Tool]) -> Events:
        step = self.trail.step

        def ask(planner: ReActPlanner) -> ModelRequest:
            return planner.request(self.trail.query, self.trail.state, tools)

        # Counting the tokens of a long history takes a while.
        request = await run_in_thread_if_large(
            _message_chars(self.trail.state.get_messages()), ask, heard.planner
        )
        started = self.trail.emit(
            EventType.STEP_STARTED,
            step=step,
            turn=self.trail.turn,
            kind="thought",
            request=self.recorded(request, heard.planner),
        )
        yield started
        if request.dropped or request.shortened:
            yield self.trail.emit(
                EventType.STATUS,
                kind="compaction",
                dropped=request.dropped,
                shortened=request.shortened,
                step=step,
            )
        async with aclosing(heard.events(request, ask)) as words:
            async for event in words:
                yield event
        fault_injection.point("P6")
        for event in self._result_events(heard, tools, started.time):
            yield event

    def _result_events(
        self, heard: ModelCall, tools: Sequence[Tool], started: datetime
    ) -> Iterator[Event]:
        plan, step = heard.plan or PlanResult(), self.trail.step
        sent = heard.request.messages if heard.request else self.trail.sent
        turn = turn_usage(plan, sent, heard.guardrails.count_tokens)
        self.trail.progress.used.add(turn)
        yield self.trail.emit(EventType.USAGE, step=step, model=heard.planner.model, **turn)
        is_thought = bool(plan.calls) or self.is_aloud
        words = plan.final_answer if is_thought else None
        thought = "\n\n".join(filter(None, (plan.thought, words)))
        if is_thought:
            yield self.trail.emit(EventType.THOUGHT, step=step, content=thought)
        yield self.trail.emit(
            EventType.STEP,
            step=step,
            kind="thought" if is_thought else "answer",
            status="blocked" if heard.finding else "done",
            thought=thought,
            answer=plan.final_answer,
            finish_reason=plan.turn.finish_reason,
            started=started.isoformat(),
            **self._open_calls(plan, heard.planner, tools),
        )

    def _open_calls(
        self, plan: PlanResult, planner: ReActPlanner, tools: Sequence[Tool]
    ) -> dict[str, Any]:
        """Open the calls of this turn and save them, so that a paused run can resume."""
        if not plan.calls:
            return {}
        calls = with_unique_ids(plan.calls, self.trail.state.get_messages())
        message = planner.message(plan, calls)
        self.trail.open, self.trail.thought = calls, plan.thought
        self.trail.say(message)
        effects = {tool.name: _effect(tool) for tool in tools}
        return {"messages": [message], "calls": [_call_record(call, effects) for call in calls]}

    def repair_events(self, heard: ModelCall, error: PlanParseError) -> Iterator[Event]:
        """Show the model its mistake; it has its remaining steps to correct it."""
        self.trail.repairs += 1
        said = "".join(heard.said)
        messages: list[Message] = [
            {"role": "assistant", "content": said or "…"},
            {"role": "user", "content": f"{OBSERVATION_PREFIX}Error: {error}"},
        ]
        for message in messages:
            self.trail.say(message)
        if said:
            yield self.trail.emit(EventType.THOUGHT, step=self.trail.step, content=said)
        yield self.trail.emit(
            EventType.STEP,
            step=self.trail.step,
            kind="thought",
            status="failed",
            error=str(error),
            messages=messages,
        )

    def recorded(self, request: ModelRequest, planner: ReActPlanner) -> dict[str, Any]:
        """Return the request as recorded: its new messages and the number already sent."""
        kept = 0
        for old, new in zip(self.trail.sent, request.messages, strict=False):
            if old != new:
                break
            kept += 1
        self.trail.sent = request.messages
        names = [tool["function"]["name"] for tool in request.tools or ()]
        replaced = planner.replaced(request.messages[kept:])
        return {
            "model": planner.model,
            **planner.provider_info,
            "kept": kept,
            "messages": request.messages[kept:],
            "tools": names,
            "parameters": dict(request.parameters),
            **({"replaced": replaced} if replaced else {}),
        }


def _message_chars(messages: Sequence[Message]) -> int:
    return sum(len(message["content"] or "") for message in messages)


def _call_record(call: ToolCall, effects: Mapping[str, str]) -> dict[str, Any]:
    """Return a call with its effect, so that a stop can report calls that weren't made."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "function": function, "effect": effects.get(call.name, "read")}


def _effect(tool: Tool) -> str:
    """A handoff has no effect itself; the calls of the other agent may."""
    return "" if isinstance(tool, Handoff) else effect(tool)
