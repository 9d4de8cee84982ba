"""One turn: builds the request, streams the reply and opens its tool calls."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from agents.engine import fault_injection
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.errors import PlanParseError
from agents.engine.events import Event, EventType, StatusKind
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import OBSERVATION_PREFIX, Message, message_chars
from agents.engine.tool import Tool
from agents.engine.turn.assembly import PlanResult, ToolCall

from ..handoff import Handoff
from ..lifecycle_events import finding_events
from ..output.figure_check import correction_messages
from ..run_state import RunState
from ..tool_calls.offered_tools import ToolBridge
from ..tool_calls.tool_fallback import effect
from .model_call import ModelCall
from .usage import turn_usage

Events = AsyncGenerator[Event, None]
DraftCheck = Callable[[ModelCall, str], list[str]]


MAX_REPAIRS = 2


class ModelStep:
    """One turn of the model; ends with a `plan`, or None if the reply couldn't be parsed.

    The calls the model decided on are open afterwards. If the run has an output schema
    (`is_aloud`), streamed text is a thought: the answer comes later.
    """

    def __init__(
        self,
        run_state: RunState,
        call: ModelCall,
        tools: Sequence[Tool],
        *,
        is_aloud: bool = False,
        bridge: ToolBridge | None = None,
        check_draft: DraftCheck | None = None,
        must_answer: bool = False,
    ) -> None:
        """`check_draft` returns what the model has to correct in its draft.

        With `must_answer`, a model that is held to a schema can't call tools.
        """
        self.run_state = run_state
        self.call = call
        self.tools = tools
        self.is_aloud = is_aloud
        self.bridge = bridge
        self.check_draft = check_draft
        self.must_answer = must_answer
        self.plan: PlanResult | None = None
        self.has_usage = False  # whether the step has used the model before its own request

    async def events(self) -> Events:
        # Counting the tokens of a long history takes a while.
        request = await run_in_thread_if_large(
            message_chars(self.run_state.state.get_messages()),
            self._request,
            self.call.planner,
        )
        start_events = request_events(self.run_state, request, self.call)
        self.has_usage = any(event.type is EventType.USAGE for event in start_events)
        for event in start_events:
            yield event
        try:
            async with aclosing(self.call.events(request, self._request)) as events:
                async for event in events:
                    yield event
        except PlanParseError as error:
            if self.run_state.repairs >= MAX_REPAIRS:
                raise
            for event in self._repair_events(error):
                yield event
            return
        finally:
            # It refers to this step, which would keep the whole run in memory until the
            # garbage collector looks.
            self.call.build_request = None
        fault_injection.point("after_model_call")
        for event in await self._judge_answer(self.call.plan or PlanResult()):
            yield event
        plan = self.call.plan or PlanResult()
        if figures := await self._unsupported_figures(plan):
            for event in self._return_draft(plan, figures, start_events[0].time):
                yield event
            return
        self.plan = self.bridge.unwrap_plan(plan) if self.bridge else plan
        for event in self._result_events(plan, start_events[0].time):
            yield event

    def _request(self, planner: ReActPlanner) -> ModelRequest:
        return planner.request(
            self.run_state.query,
            self.run_state.state,
            self.tools,
            must_answer=self.must_answer,
        )

    async def _judge_answer(self, plan: PlanResult) -> list[Event]:
        """Have the answer judged before it is released; return what was held back."""
        call = self.call
        text = plan.final_answer
        if call.finding is not None or plan.calls or not text:
            return []
        checks = call.guardrails.model_checks
        findings = await checks.judge(text, "output", holding=True)
        call.findings += findings
        for finding in findings:
            if finding.blocks:
                call.block(finding)
                return []
        self.run_state.judged_answer = text
        return [] if self.is_aloud else call.release()

    async def _unsupported_figures(self, plan: PlanResult) -> list[str]:
        draft = plan.final_answer
        if self.check_draft is None or self.call.finding or plan.calls or not draft:
            return []
        # Comparing a long draft with long results takes a while.
        return await asyncio.to_thread(self.check_draft, self.call, draft)

    def _return_draft(
        self, plan: PlanResult, figures: Sequence[str], started: datetime
    ) -> list[Event]:
        """Make the draft a thought, and show the model which figures it has to correct."""
        call = self.call
        emit = self.run_state.emit
        draft = plan.final_answer or ""
        usage = turn_usage(plan, call.request.messages, call.guardrails.count_tokens)
        self.run_state.progress.used.add(usage)
        usage_fields: dict[str, Any] = {"is_added": True} if self.has_usage else {}
        usage_fields |= {"cached": call.cached.to_dict()} if call.cached else {}
        messages = correction_messages(draft, figures)
        for message in messages:
            self.run_state.say(message)
        self.run_state.has_returned_draft = True
        thought = "\n\n".join(filter(None, (plan.thought, draft)))
        step = call.step
        events = [
            emit(EventType.USAGE, step=step, model=call.planner.model, **usage, **usage_fields),
            emit(
                EventType.STATUS,
                kind=StatusKind.FIGURES_RETURNED,
                figures=list(figures),
                step=step,
            ),
            emit(EventType.THOUGHT, step=step, content=thought),
            emit(
                EventType.STEP,
                step=step,
                kind="thought",
                status="done",
                thought=thought,
                finish_reason=plan.turn.finish_reason,
                started=started.isoformat(),
                messages=messages,
            ),
        ]
        for finding in call.findings:
            events += finding_events(self.run_state, finding)
        return events

    def _result_events(self, plan: PlanResult, started: datetime) -> list[Event]:
        call = self.call
        step = self.run_state.step
        emit = self.run_state.emit
        usage = turn_usage(plan, call.request.messages, call.guardrails.count_tokens)
        self.run_state.progress.used.add(usage)
        is_thought = bool(plan.calls) or self.is_aloud
        answer = plan.final_answer if is_thought else None
        thought = "\n\n".join(filter(None, (plan.thought, answer)))
        usage_fields: dict[str, Any] = {"is_added": True} if self.has_usage else {}
        usage_fields |= {"cached": call.cached.to_dict()} if call.cached else {}
        events = [
            emit(EventType.USAGE, step=step, model=call.planner.model, **usage, **usage_fields)
        ]
        if is_thought:
            events.append(emit(EventType.THOUGHT, step=step, content=thought))
        ended = emit(
            EventType.STEP,
            step=step,
            kind="thought" if is_thought else "answer",
            status="blocked" if call.finding else "done",
            thought=thought,
            answer=plan.final_answer,
            finish_reason=plan.turn.finish_reason,
            started=started.isoformat(),
            **self._open_calls(plan),
        )
        events.append(ended)
        if plan.calls and self.bridge:
            # Calls of tools that the model wasn't sent, or that don't exist.
            for miss in self.bridge.misses(self.run_state.open):
                event = emit(EventType.STATUS, kind=StatusKind.UNSENT_TOOL, **miss, step=step)
                events.append(event)
        for finding in call.findings:
            events += finding_events(self.run_state, finding)
        return events

    def _open_calls(self, plan: PlanResult) -> dict[str, Any]:
        """Open the calls of this turn and save them, so that a paused run can resume."""
        if not plan.calls:
            return {}
        # Unique ids, because a shared one would assign a result to the wrong call.
        history = self.run_state.state.get_messages()
        used_ids = {"react"}
        used_ids |= {call["id"] for m in history for call in m.get("tool_calls") or ()}
        calls: tuple[ToolCall, ...] = ()
        for call in plan.calls:
            if call.id in used_ids:
                call = replace(call, id=f"call_{uuid4().hex[:12]}")
            calls = (*calls, call)
            used_ids.add(call.id)
        message = self.call.planner.message(plan, calls)
        # The history has the model's own words; what it called through is unwrapped.
        calls = self.bridge.unwrap(calls) if self.bridge else calls
        self.run_state.open = calls
        self.run_state.thought = plan.thought
        self.run_state.say(message)
        tools = self.bridge.registry if self.bridge else self.tools
        # A handoff has no effect itself; the calls of the other agent may.
        effects = {t.name: "" if isinstance(t, Handoff) else effect(t) for t in tools}
        # With their effects, so that a stop can report calls that weren't made.
        call_records = [
            {
                "id": call.id,
                "function": {"name": call.name, "arguments": call.arguments},
                "effect": effects.get(call.name, "read"),
            }
            for call in calls
        ]
        return {"messages": [message], "calls": call_records}

    def _repair_events(self, error: PlanParseError) -> list[Event]:
        """Show the model its mistake; it has its remaining steps to correct it."""
        self.run_state.repairs += 1
        step = self.run_state.step
        emit = self.run_state.emit
        text = "".join(self.call.text_parts)
        messages: list[Message] = [
            {"role": "assistant", "content": text or "…"},
            {"role": "user", "content": f"{OBSERVATION_PREFIX}Error: {error}"},
        ]
        if self.call.request.by_schema:
            # The next schema has only an answer: a weak model would repeat the error in it.
            messages = []
        for message in messages:
            self.run_state.say(message)
        events = [emit(EventType.THOUGHT, step=step, content=text)] if text else []
        ended = emit(
            EventType.STEP,
            step=step,
            kind="thought",
            status="failed",
            error=str(error),
            messages=messages,
        )
        return [*events, ended]


def request_events(
    run_state: RunState, request: ModelRequest, call: ModelCall, **fields: Any
) -> list[Event]:
    """Return the event that starts the step, and those about what the request leaves out."""
    started = run_state.emit(
        EventType.STEP_STARTED,
        step=call.step,
        turn=run_state.turn,
        kind="thought",
        **fields,
        request=_record_request(run_state, request, call.planner),
    )
    notice_events = list[Event]()
    # What the request contains, and what that has used.
    for note in run_state.notes:
        note_fields = {name: value for name, value in note.items() if name != "usage"}
        notice_events.append(run_state.emit(EventType.STATUS, **note_fields, step=call.step))
        if usage := note.get("usage"):
            notice_events.append(
                run_state.emit(EventType.USAGE, step=call.step, is_added=True, **usage)
            )
    run_state.notes = []
    notice_events += [
        run_state.emit(
            EventType.STATUS,
            kind=StatusKind.UNSENT_ATTACHMENTS,
            count=count,
            message=reason,
            step=call.step,
        )
        for reason, count in request.unsent.items()
    ]
    if not request.dropped and not request.shortened:
        return [started, *notice_events]
    left_out = {"dropped": request.dropped, "shortened": request.shortened}
    compaction_event = run_state.emit(
        EventType.STATUS, kind=StatusKind.COMPACTION, **left_out, step=call.step
    )
    return [started, compaction_event, *notice_events]


def _record_request(
    run_state: RunState, request: ModelRequest, planner: ReActPlanner
) -> dict[str, Any]:
    """Return the request as recorded: its new messages and the number already sent."""
    unchanged = 0
    for old, new in zip(run_state.sent, request.messages, strict=False):
        if old != new:
            break
        unchanged += 1
    run_state.sent = request.messages
    names = [tool["function"]["name"] for tool in request.tools or ()]
    replaced = planner.aliases(request.messages[unchanged:])
    return {
        "model": planner.model,
        **planner.provider_info,
        "kept": unchanged,
        "messages": request.messages[unchanged:],
        "tools": names,
        "parameters": dict(request.parameters),
        **({"replaced": replaced} if replaced else {}),
    }
