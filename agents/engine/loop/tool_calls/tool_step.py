"""Makes the tool calls of one turn: calls and results as events, in order."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import takewhile
from typing import Any

from agents.engine import fault_injection
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.events import Event, EventFactory, EventType
from agents.engine.guardrails.checks import GuardrailResult, Guardrails
from agents.engine.state import Message
from agents.engine.tool import text_argument
from agents.engine.turn.assembly import ToolCall

from ..cancellation import cancel_call
from ..handoff import Handoff, HandoffRun
from ..lifecycle_events import pause_event
from ..model_calls.sampling import Sampler
from ..run_state import RunState
from .approval import ApprovalPolicy, AskPersonTool
from .call_approvals import CallApprovals, call_effect, call_step
from .call_events import CallEvents
from .client_tool import ClientTool
from .live_call import LiveCall
from .tool_fallback import FallbackResult
from .tool_runner import ToolRunner

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
        self.guardrails = guardrails or Guardrails()
        self.sampler = sampler
        self.approvals = CallApprovals(run_state, tool_runner, approval_policy)
        self.call_events = CallEvents(run_state, opening)
        self._findings: dict[str, tuple[GuardrailResult, ...]] = {}
        self._live_calls: dict[str, LiveCall] = {}

    async def events(self) -> Events:
        await self._check_calls()
        await self.tool_runner.check_unsent(self._approved_calls(self.run_state.open))
        for event in await self.approvals.apply_grants():
            yield event
        ready = list(
            takewhile(lambda call: not self.approvals.is_needed(call), self.run_state.open)
        )
        clock = self.run_state.emit.clock
        began = clock.now()
        async with self.tool_runner.run_concurrently(
            self._approved_calls(ready), self._live_call
        ) as tasks:
            for call in ready:
                pending = tasks.get(call.id)
                call_fields: dict[str, Any] = {
                    "step": call_step(self.run_state, call),
                    "turn": self.run_state.turn,
                    "started": (began if pending else clock.now()).isoformat(),
                }
                if (settled := self._settled_events(call, call_fields)) is not None:
                    for event in settled:
                        yield event
                    continue
                decision = self.run_state.decisions.get(call.id)
                if decision is not None and self._is_of_client(call):
                    outcome = FallbackResult(result=decision.client_result)
                    outcome = await self.tool_runner.screen(outcome, call.name)
                    for event in self.call_events.result(call, call, outcome, call_fields):
                        yield event
                    continue
                effective_call = decision.of(call) if decision else call
                for event in self._start_events(call, effective_call, call_fields):
                    yield event
                fault_injection.point("before_tool_call")
                call_run = self._run(effective_call, call_fields["step"], pending)
                async with aclosing(call_run.events()) as events:
                    async for event in events:
                        is_paused = event.type is EventType.RUN_PAUSED
                        self.run_state.is_over |= is_paused
                        yield event
                        if is_paused:
                            return
                if isinstance(call_run, ToolRun):
                    made = call_run.outcome
                elif call_run.result is not None:
                    result = FallbackResult(result=call_run.result)
                    made = await self.tool_runner.guard_result(result)
                else:
                    made = None
                if made is None:  # a handoff has ended without a result
                    continue
                fault_injection.point("after_tool_call")
                for event in self.call_events.result(call, effective_call, made, call_fields):
                    yield event
        if self.run_state.open:
            for event in self.approvals.requests():
                yield event
            yield pause_event(self.run_state)

    async def _check_calls(self) -> None:
        """Apply guardrails to the calls before requesting approval."""
        self.run_state.barred.clear()
        if not self.guardrails.applies_to("tool_input"):
            return
        for call in self.run_state.open:
            decision = self.run_state.decisions.get(call.id)
            effective_call = decision.of(call) if decision else call
            size = len(effective_call.arguments)
            value = effective_call.readable
            inspect = self.guardrails.inspect_value
            inspected = await run_in_thread_if_large(size, inspect, value, "tool_input")
            self._findings[call.id] = inspected.findings
            if inspected.is_blocked:
                self.run_state.barred.add(call.id)
            elif inspected.value != value:
                # The arguments are masked, including those a person edited.
                arguments = json.dumps(inspected.value, ensure_ascii=False)
                masked = replace(call, arguments=arguments)
                self.run_state.open = tuple(
                    masked if o.id == call.id else o for o in self.run_state.open
                )
                if decision is not None and decision.arguments is not None:
                    self.run_state.decisions[call.id] = replace(decision, arguments=arguments)

    def _approved_calls(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Return the calls to make: approved, and edited if a person changed them."""
        free = [call for call in calls if call.id not in self.run_state.barred]
        decisions = [(call, self.run_state.decisions.get(call.id)) for call in free]
        return [v.of(c) if v else c for c, v in decisions if v is None or v.is_approved]

    def _settled_events(
        self, call: ToolCall, call_fields: dict[str, Any]
    ) -> list[Event] | None:
        """Return the result of a call that a guardrail or a person has settled, or None."""
        if call.id in self.run_state.barred:
            return self.call_events.blocked(call, self._findings[call.id], call_fields)
        decision = self.run_state.decisions.get(call.id)
        if decision is None:
            return None
        registry = self.tool_runner.registry
        tool = registry.get(call.name) if registry.has(call.name) else None
        if isinstance(tool, AskPersonTool) and isinstance(call.readable, dict):
            reply = decision.reply(self.approvals.reason(call) or "question")
            return self.call_events.answer(call, reply, call_fields)
        if not decision.is_approved and not isinstance(tool, ClientTool):
            return self.call_events.declined(call, decision, call_fields)
        return None

    def _is_of_client(self, call: ToolCall) -> bool:
        registry = self.tool_runner.registry
        tool = registry.get(call.name) if registry.has(call.name) else None
        return isinstance(tool, ClientTool)

    def _start_events(
        self, call: ToolCall, effective_call: ToolCall, call_fields: dict[str, Any]
    ) -> list[Event]:
        if call.id in self.run_state.started_calls:
            return []
        effect = call_effect(self.tool_runner.registry, effective_call)
        findings = self._findings.get(call.id, ())
        called = self.call_events.call(effective_call, call_fields, effect=effect)
        return [called, *self.call_events.findings(effective_call, call_fields, findings)]

    def _live_call(self, call: ToolCall) -> LiveCall:
        """Return the context of this call."""
        if call.id not in self._live_calls:
            work_time = self.run_state.progress.time
            self._live_calls[call.id] = LiveCall(
                call, self.guardrails, work_time, self.sampler, self.run_state.material
            )
        return self._live_calls[call.id]

    def _run(
        self, call: ToolCall, step: int, pending: asyncio.Task[FallbackResult] | None
    ) -> "HandoffRun | ToolRun":
        """Start the call, unless it is already running."""
        registry = self.tool_runner.registry
        tool = registry.get(call.name) if registry.has(call.name) else None
        if isinstance(tool, Handoff) and isinstance(call.readable, dict):
            return HandoffRun(tool, text_argument(call.readable, "task"), self.run_state, step)
        live = self._live_call(call)
        task = pending or asyncio.create_task(self.tool_runner.use(call, live))
        return ToolRun(live, task, self.run_state.emit, step, call_effect(registry, call))


class ToolRun:
    """One call while it runs; holds its `outcome` after its last event."""

    def __init__(
        self,
        live: LiveCall,
        task: asyncio.Task[FallbackResult],
        emit: EventFactory,
        step: int,
        effect: str,
    ) -> None:
        self.live = live
        self.task = task
        self.emit = emit
        self.step = step
        self.effect = effect
        self.outcome: FallbackResult | None = None

    async def events(self) -> Events:
        """Yield what the call reports; if the run is stopped, cancel the call."""
        is_over = False
        try:
            while not is_over:
                is_over = await self.live.wait(self.task)
                for event in self.live.take_events(self.emit, self.step, is_over=is_over):
                    yield event
            self.outcome = self.task.result()
        except (asyncio.CancelledError, GeneratorExit):
            await cancel_call(self.task, self.step, self.effect)
            raise
