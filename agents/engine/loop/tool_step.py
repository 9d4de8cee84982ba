"""Makes the tool calls of one turn: calls and results as events, in order."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from itertools import chain, takewhile
from typing import Any
from uuid import uuid4

from agents.engine import fault_injection
from agents.engine.attachments import refs_of
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.events import Event, EventType, StatusKind
from agents.engine.guardrails.checks import GuardrailResult, Guardrails, Inspection
from agents.engine.state import AgentStep, Message
from agents.engine.tool import Effect, text_argument
from agents.engine.turn.assembly import ToolCall

from .approval import (
    GRANTABLE_REASONS,
    ApprovalDecision,
    ApprovalPolicy,
    ApprovalReason,
    AskPersonTool,
    StandingApproval,
    digest,
    fingerprint,
)
from .cancellation import cancel_call
from .handoff import Handoff, HandoffRun
from .lifecycle_events import finding_events, pause_event
from .live_call import LiveCall
from .run_state import RunState
from .sampling import Sampler
from .tool_fallback import FallbackResult, effect
from .tool_runner import ToolRunner

MAX_OBSERVATION_CHARS = 200_000
PREVIEW_CHARS = 200

Events = AsyncGenerator[Event, None]


class ToolStep:
    """Makes the open calls of a run; pauses if one requires approval."""

    def __init__(
        self,
        run_state: RunState,
        tool_runner: ToolRunner,
        approval_policy: ApprovalPolicy,
        guardrails: Guardrails | None = None,
        sampler: Sampler | None = None,
        opening: Message | None = None,
    ) -> None:
        """`opening` is the message with the calls, if no model wrote it."""
        self.run_state = run_state
        self.tool_runner = tool_runner
        self.approval_policy = approval_policy
        self.guardrails = guardrails or Guardrails()
        self.sampler = sampler
        self.opening = opening
        self._findings: dict[str, tuple[GuardrailResult, ...]] = {}
        self._live_calls: dict[str, LiveCall] = {}

    async def events(self) -> Events:
        await self._check_calls()
        await self.tool_runner.check_unsent(self._approved_calls(self.run_state.open))
        for event in await self._standing_approvals():
            yield event
        ready = list(
            takewhile(lambda call: not self._needs_approval(call), self.run_state.open)
        )
        clock = self.run_state.emit.clock
        began = clock.now()
        async with self.tool_runner.run_concurrently(
            self._approved_calls(ready), self._live_call
        ) as tasks:
            for call in ready:
                pending = tasks.get(call.id)
                about = self._call_fields(call, began if pending else clock.now())
                if (settled := self._settled_events(call, about)) is not None:
                    for event in settled:
                        yield event
                    continue
                made = self._approved_call(call)
                handoff = self._handoff_run(made, about["step"])
                for event in self._start_events(call, made, handoff, about):
                    yield event
                fault_injection.point("before_tool_call")
                if handoff is None:
                    live, is_over = self._live_call(made), False
                    task = pending or asyncio.create_task(self.tool_runner.use(made, live))
                    try:
                        while not is_over:
                            is_over = await live.wait(task)
                            for event in live.take_events(
                                self.run_state.emit, about["step"], is_over=is_over
                            ):
                                yield event
                        outcome = task.result()
                    except (asyncio.CancelledError, GeneratorExit):
                        await cancel_call(task, about["step"], self._effect(made))
                        raise
                else:
                    async with aclosing(handoff.events()) as events:
                        async for event in events:
                            is_paused = event.type is EventType.RUN_PAUSED
                            self.run_state.is_over |= is_paused
                            yield event
                            if is_paused:
                                return
                    if handoff.result is None:
                        continue
                    result = FallbackResult(result=handoff.result)
                    outcome = await self.tool_runner.guard_result(result)
                fault_injection.point("after_tool_call")
                for event in self._result_events(call, made, outcome, about):
                    yield event
        if self.run_state.open:
            for event in self._approval_requests():
                yield event
            yield pause_event(self.run_state)

    async def _check_calls(self) -> None:
        """Apply guardrails to the calls before requesting approval."""
        self.run_state.barred.clear()
        if not self.guardrails.applies_to("tool_input"):
            return
        for call in self.run_state.open:
            verdict = self.run_state.decisions.get(call.id)
            effective_call = verdict.of(call) if verdict else call
            size, value = len(effective_call.arguments), effective_call.readable
            inspect = self.guardrails.inspect_value
            inspected = await run_in_thread_if_large(size, inspect, value, "tool_input")
            self._findings[call.id] = inspected.findings
            if inspected.is_blocked:
                self.run_state.barred.add(call.id)
            elif inspected.value != value:
                self._change(call, verdict, json.dumps(inspected.value, ensure_ascii=False))

    def _change(self, call: ToolCall, verdict: ApprovalDecision | None, arguments: str) -> None:
        """Mask the call's arguments, including those a person edited."""
        changed = replace(call, arguments=arguments)
        self.run_state.open = tuple(
            changed if o.id == call.id else o for o in self.run_state.open
        )
        if verdict is not None and verdict.arguments is not None:
            self.run_state.decisions[call.id] = replace(verdict, arguments=arguments)

    def _needs_approval(self, call: ToolCall) -> bool:
        is_settled = call.id in self.run_state.decisions or call.id in self.run_state.barred
        if is_settled or self.tool_runner.misfit(call):
            return False
        return self._approval_reason(call) is not None

    def _approval_reason(self, call: ToolCall) -> ApprovalReason | None:
        if call.id in self.run_state.unsure:
            return "unknown"
        why = self.approval_policy.why(call)
        if why in {None, *GRANTABLE_REASONS} and self._is_tightened(call):
            return "untrusted"
        return "question" if why == "sharing" and call.id in self.run_state.shared else why

    async def _standing_approvals(self) -> list[Event]:
        """Approve the calls that the user always allows; each has its request and decision."""
        events: list[Event] = []
        for call in filter(self._needs_approval, self.run_state.open):
            if self._approval_reason(call) not in GRANTABLE_REASONS:
                continue
            grant = await self.approval_policy.standing(call)
            if grant is None:
                continue
            if call.id not in self.run_state.pending:
                events.append(
                    self._approval_request(call, self._approval_reason(call) or "tool")
                )
            events.append(self._approve(call, grant))
        return events

    def _approve(self, call: ToolCall, grant: StandingApproval) -> Event:
        self.run_state.pending.discard(call.id)
        self.run_state.decisions[call.id] = ApprovalDecision(is_approved=True, by=grant.by_name)
        return self.run_state.emit(
            EventType.APPROVAL_RESOLVED,
            id=call.id,
            step=self.run_state.requested_approvals[call.id],
            is_approved=True,
            arguments=None,
            reason="",
            by=grant.by,
            by_name=grant.by_name,
            grant={"id": grant.grant, "scope": grant.scope},
        )

    def _approval_requests(self) -> list[Event]:
        """Request all approvals of this turn at once."""
        return [
            self._approval_request(call, self._approval_reason(call) or "tool")
            for call in filter(self._needs_approval, self.run_state.open)
            if call.id not in self.run_state.pending
        ]

    def _approval_request(self, call: ToolCall, why: ApprovalReason) -> Event:
        step = self.run_state.requested_approvals[call.id] = self._call_step(call)
        self.run_state.pending.add(call.id)
        tool = fingerprint(self.tool_runner.registry.get(call.name))
        return self.run_state.emit(
            EventType.APPROVAL_REQUESTED,
            id=call.id,
            function={"name": call.name, "arguments": call.arguments},
            digest=digest(call, why, self.run_state.emit.seq + 1, tool),
            tool=tool,
            why=why,
            effect="" if self._handoff_run(call, step) else self._effect(call),
            # Not visible to others until the run's user has approved.
            role="" if why == "sharing" else self.approval_policy.role(call),
            thought=self.run_state.thought,
            step=step,
            turn=self.run_state.turn,
        )

    def _asks_person(self, call: ToolCall) -> bool:
        registry = self.tool_runner.registry
        known = registry.has(call.name) and isinstance(call.readable, dict)
        return known and isinstance(registry.get(call.name), AskPersonTool)

    def _is_tightened(self, call: ToolCall) -> bool:
        """Whether the call waits for a person because of what the run has read."""
        registry = self.tool_runner.registry
        tool = registry.get(call.name) if registry.has(call.name) else None
        # Handoffs and questions have no effect themselves.
        if isinstance(tool, Handoff | AskPersonTool) or call.id in self.run_state.started_calls:
            return False
        return self.approval_policy.is_tightened(call, self.run_state.material)

    def _approved_calls(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Return the calls to make: approved, and edited if a person changed them."""
        free = [call for call in calls if call.id not in self.run_state.barred]
        verdicts = [(call, self.run_state.decisions.get(call.id)) for call in free]
        return [v.of(c) if v else c for c, v in verdicts if v is None or v.is_approved]

    def _call_fields(self, call: ToolCall, started: datetime) -> dict[str, Any]:
        step, turn = self._call_step(call), self.run_state.turn
        return {"step": step, "turn": turn, "started": started.isoformat()}

    def _call_step(self, call: ToolCall) -> int:
        """Return the call's step, which exists if it was started or has an approval request."""
        step = self.run_state.started_calls.get(
            call.id
        ) or self.run_state.requested_approvals.get(call.id)
        if step is None:
            step = self.run_state.next_step()
            self.run_state.progress.record(call)
        return step

    def _approved_call(self, call: ToolCall) -> ToolCall:
        """Return the call with a person's changes, if any."""
        verdict = self.run_state.decisions.get(call.id)
        return verdict.of(call) if verdict else call

    def _settled_events(self, call: ToolCall, about: dict[str, Any]) -> list[Event] | None:
        """Return the result of a call that a guardrail or a person has settled, or None."""
        if call.id in self.run_state.barred:
            return self._blocked_events(call, about)
        verdict = self.run_state.decisions.get(call.id)
        if verdict is not None and self._asks_person(call):
            return self._answer_events(call, verdict, about)
        if verdict is not None and not verdict.is_approved:
            return self._declined_events(call, verdict, about)
        return None

    def _start_events(
        self, call: ToolCall, made: ToolCall, handoff: HandoffRun | None, about: dict[str, Any]
    ) -> list[Event]:
        if call.id in self.run_state.started_calls:
            return []
        # A handoff has no effect itself; the calls of the other agent may.
        effect = "" if handoff else self._effect(made)
        findings = self._findings.get(call.id, ())
        called = self._call_event(made, about, effect=effect)
        return [called, *self._guardrail_events(made, about, findings)]

    def _live_call(self, call: ToolCall) -> LiveCall:
        """Return the context of this call."""
        if call.id not in self._live_calls:
            work_time = self.run_state.progress.time
            self._live_calls[call.id] = LiveCall(
                call, self.guardrails, work_time, self.sampler, self.run_state.material
            )
        return self._live_calls[call.id]

    def _call_event(self, call: ToolCall, about: dict[str, Any], **more: Any) -> Event:
        function = {"name": call.name, "arguments": call.arguments}
        opening = {"messages": [self.opening]} if self.opening else {}
        return self.run_state.emit(
            EventType.TOOL_CALL, id=call.id, function=function, **opening, **more, **about
        )

    def _guardrail_events(
        self, call: ToolCall, about: dict[str, Any], findings: Sequence[GuardrailResult]
    ) -> list[Event]:
        place = {"tool": call.name, "call": about["step"]}
        found = (finding_events(self.run_state, finding, **place) for finding in findings)
        return list(chain.from_iterable(found))

    def _effect(self, call: ToolCall) -> Effect:
        registry = self.tool_runner.registry
        return effect(registry.get(call.name)) if registry.has(call.name) else "read"

    def _handoff_run(self, call: ToolCall, step: int) -> HandoffRun | None:
        """Return the call as a handoff, if it is one."""
        registry = self.tool_runner.registry
        tool = registry.get(call.name) if registry.has(call.name) else None
        if not isinstance(tool, Handoff) or not isinstance(call.readable, dict):
            return None
        return HandoffRun(tool, text_argument(call.readable, "task"), self.run_state, step)

    def _result_events(
        self, call: ToolCall, made: ToolCall, outcome: FallbackResult, about: dict[str, Any]
    ) -> list[Event]:
        result, is_error = outcome.result, outcome.result.is_error
        verdict, text = self.run_state.decisions.get(call.id), _truncate(result.text)
        observation = verdict.annotate(text) if verdict else text
        failure = type(outcome.failure).__name__ if outcome.failure else ""
        used = {"stand_in": outcome.stand_in} if outcome.stand_in else {}
        details = {"note": result.note, "is_data": result.is_data and not is_error}
        details |= {"error_type": failure, **used, "tried": outcome.tried}
        details |= {"attachments": list(outcome.attachments)}
        details |= {"is_untrusted": outcome.is_untrusted, "suspicion": outcome.suspicion}
        details["cached"] = outcome.cached.to_dict() if outcome.cached else None
        more = {name: value for name, value in details.items() if value}
        if result.sources is not None and not is_error:
            more["sources"] = [source.to_dict() for source in result.sources]
        status = "failed" if is_error else "done"
        ended = self.run_state.emit.clock.at(outcome.ended).isoformat()
        return [
            self._response_event(made, observation, is_error, outcome.attempts, about, **more),
            *self._guardrail_events(made, about, outcome.findings),
            *self._status_events(made, outcome, about["step"]),
            self._step_event(made, status, observation, about, ended=ended, **used),
        ]

    def _status_events(self, call: ToolCall, outcome: FallbackResult, step: int) -> list[Event]:
        """Report a fallback tool, a suspicious result, or that the tool is degraded."""
        emit, events = self.run_state.emit, list[Event]()
        if outcome.stand_in is not None:
            fallback = emit(
                EventType.STATUS,
                kind=StatusKind.TOOL_FALLBACK,
                tool=call.name,
                stand_in=outcome.stand_in,
                message=outcome.reason,
                step=step,
                **({"is_preferred": True} if outcome.is_preferred else {}),
            )
            events.append(fallback)
        if outcome.suspicion:
            found = emit(
                EventType.STATUS,
                kind=StatusKind.EMBEDDED_INSTRUCTIONS,
                tool=call.name,
                message=outcome.suspicion,
                step=step,
            )
            events.append(found)
        if outcome.degraded:
            events.append(
                emit(EventType.STATUS, kind=StatusKind.DEGRADED, tool=call.name, step=step)
            )
        return events

    def _blocked_events(self, call: ToolCall, about: dict[str, Any]) -> list[Event]:
        """Report a call that a guardrail blocked; the model learns why and continues."""
        findings, events = self._findings[call.id], list[Event]()
        if call.id not in self.run_state.started_calls:
            events.append(self._call_event(call, about, effect="", is_barred=True))
            events += self._guardrail_events(call, about, findings)
        reason = Inspection(findings=findings).result.reason
        observation = (
            f"Error: the tool wasn't called. {reason} "
            "Don't repeat the call. Continue without it or with other arguments."
        )
        return [
            *events,
            self._response_event(call, observation, True, 0, about),
            self._step_event(call, "blocked", observation, about),
        ]

    def _answer_events(
        self, call: ToolCall, verdict: ApprovalDecision, about: dict[str, Any]
    ) -> list[Event]:
        """Report a person's answer."""
        result = verdict.reply(self._approval_reason(call) or "question")
        status = "rejected" if result.is_error else "done"
        return [
            self._response_event(call, result.text, result.is_error, 1, about),
            self._step_event(call, status, result.text, about),
        ]

    def _declined_events(
        self, call: ToolCall, verdict: ApprovalDecision, about: dict[str, Any]
    ) -> list[Event]:
        """Report a call that a person rejected, or confirmed as made before an interruption."""
        was_made = call.id in self.run_state.unsure
        observation = verdict.outcome if was_made else verdict.refusal
        return [
            self._response_event(call, observation, not was_made, 0, about),
            self._step_event(call, "done" if was_made else "rejected", observation, about),
        ]

    def _response_event(
        self,
        call: ToolCall,
        observation: str,
        is_error: bool,
        attempts: int,
        about: dict[str, Any],
        **more: Any,
    ) -> Event:
        untrusted = bool(more.get("is_untrusted"))
        self.run_state.close(call, observation, refs_of(more), is_untrusted=untrusted)
        self.run_state.material.record({**more, **about})
        self.run_state.state.add_step(
            AgentStep(
                thought=self.run_state.thought,
                action=call.name,
                action_input=call.readable,
                observation=observation,
            )
        )
        return self.run_state.emit(
            EventType.TOOL_RESPONSE,
            tool_call_id=call.id,
            name=call.name,
            content_preview=observation[:PREVIEW_CHARS],
            content=observation,
            is_error=is_error,
            attempts=attempts,
            **more,
            **about,
        )

    def _step_event(
        self, call: ToolCall, status: str, observation: str, about: dict[str, Any], **more: Any
    ) -> Event:
        return self.run_state.emit(
            EventType.STEP,
            kind="tool",
            status=status,
            thought=self.run_state.thought,
            # The result is the work of the tool that was actually used.
            action=more.get("stand_in") or call.name,
            action_input=call.arguments,
            observation=observation[:PREVIEW_CHARS],
            **({"called": call.name} if more.pop("stand_in", None) else {}),
            **more,
            **about,
        )


def with_unique_ids(
    calls: Sequence[ToolCall], history: Sequence[Message]
) -> tuple[ToolCall, ...]:
    """Give calls unique ids, because a shared id would assign a result to the wrong call."""
    used_ids = {tool_call["id"] for m in history for tool_call in m.get("tool_calls") or ()} | {
        "react"
    }
    unique: list[ToolCall] = []
    for call in calls:
        is_taken = call.id in used_ids
        unique.append(replace(call, id=f"call_{uuid4().hex[:12]}") if is_taken else call)
        used_ids.add(unique[-1].id)
    return tuple(unique)


def _truncate(text: str) -> str:
    if len(text) <= MAX_OBSERVATION_CHARS:
        return text
    cut = len(text) - MAX_OBSERVATION_CHARS
    return f"{text[:MAX_OBSERVATION_CHARS]}\n[… {cut:,} more characters cut]"
