"""Using the tools of one turn: calls and results as events, in order."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any
from uuid import uuid4

from agents.engine import fault_injection
from agents.engine.concurrency.thread import aside
from agents.engine.events import Event, Type
from agents.engine.guardrails.checks import GuardrailResult, Guardrails, Inspection
from agents.engine.state import AgentStep, Message
from agents.engine.tool import Effect, argument
from agents.engine.turn.assembly import ToolCall

from .approval import Asking, AskPerson, Verdict, Why, digest, fingerprint
from .cancellation import result_of
from .handoff import Errand, Handoff
from .lifecycle_events import guarded
from .run_state import Trail
from .tool_fallback import FallbackResult, effect
from .tool_runner import Toolbox

MOST_OBSERVATION = 200_000
PREVIEW = 200

Events = AsyncGenerator[Event, None]


class Acting:
    """Makes the open calls of a trail; where a person has to be asked first, it pauses."""

    def __init__(
        self,
        trail: Trail,
        toolbox: Toolbox,
        asking: Asking,
        guardrails: Guardrails | None = None,
    ) -> None:
        self.trail = trail
        self.toolbox = toolbox
        self.asking = asking
        self.guardrails = guardrails or Guardrails()
        self._findings: dict[str, tuple[GuardrailResult, ...]] = {}

    async def events(self) -> Events:
        await self._check()
        ready = list(takewhile(lambda call: not self._waits(call), self.trail.open))
        async with aclosing(self._make(ready)) as making:
            async for event in making:
                yield event
                if event.type is Type.RUN_PAUSED:
                    return
        if self.trail.open:
            for event in self._ask():
                yield event
            yield self.trail.emit(Type.RUN_PAUSED, reason="approval", turn=self.trail.turn)

    async def _check(self) -> None:
        """See what rules say of the calls, before anybody is asked about them."""
        self.trail.barred.clear()
        if not self.guardrails.watches("tool_input"):
            return
        for call in self.trail.open:
            verdict = self.trail.verdicts.get(call.id)
            made = verdict.of(call) if verdict else call
            size, value = len(made.arguments), made.readable
            inspect = self.guardrails.inspect_value
            inspected = await aside(size, inspect, value, "tool_input")
            self._findings[call.id] = inspected.findings
            if inspected.is_blocked:
                self.trail.barred.add(call.id)
            elif inspected.value != value:
                self._change(call, verdict, json.dumps(inspected.value, ensure_ascii=False))

    def _change(self, call: ToolCall, verdict: Verdict | None, arguments: str) -> None:
        """The call with what the tool must not see masked, in a person's words too."""
        changed = replace(call, arguments=arguments)
        self.trail.open = tuple(changed if o.id == call.id else o for o in self.trail.open)
        if verdict is not None and verdict.arguments is not None:
            self.trail.verdicts[call.id] = replace(verdict, arguments=arguments)

    def _waits(self, call: ToolCall) -> bool:
        is_settled = call.id in self.trail.verdicts or call.id in self.trail.barred
        return not is_settled and self._why(call) is not None

    def _why(self, call: ToolCall) -> Why | None:
        if call.id in self.trail.unsure:
            return "unknown"
        why = self.asking.why(call)
        return "question" if why == "sharing" and call.id in self.trail.shared else why

    def _ask(self) -> Iterator[Event]:
        """All that has to be asked in this turn, in one go."""
        for call in filter(self._waits, self.trail.open):
            if call.id not in self.trail.pending:
                yield self._question(call, self._why(call) or "tool")

    def _question(self, call: ToolCall, why: Why) -> Event:
        step = self.trail.asked[call.id] = self._step_of(call)
        self.trail.pending.add(call.id)
        tool = fingerprint(self.toolbox.registry.get(call.name))
        return self.trail.emit(
            Type.APPROVAL_REQUESTED,
            id=call.id,
            function={"name": call.name, "arguments": call.arguments},
            digest=digest(call, why, self.trail.emit.seq + 1, tool),
            tool=tool,
            why=why,
            effect="" if self._errand(call, step) else self._effect(call),
            # Nobody else sees it before the person who asked has approved.
            role="" if why == "sharing" else self.asking.role(call),
            thought=self.trail.thought,
            step=step,
            turn=self.trail.turn,
        )

    def _asks_person(self, call: ToolCall) -> bool:
        registry = self.toolbox.registry
        known = registry.has(call.name) and isinstance(call.readable, dict)
        return known and isinstance(registry.get(call.name), AskPerson)

    async def _make(self, calls: Sequence[ToolCall]) -> Events:
        clock = self.trail.emit.clock
        began = clock.now()
        async with self.toolbox.side_by_side(self._allowed(calls)) as begun:
            for call in calls:
                pending = begun.get(call.id)
                about = self._about(call, began if pending else clock.now())
                if call.id in self.trail.barred:
                    for event in self._barred(call, about):
                        yield event
                    continue
                verdict = self.trail.verdicts.get(call.id)
                if verdict is not None and self._asks_person(call):
                    for event in self._answered(call, verdict, about):
                        yield event
                    continue
                if verdict is not None and not verdict.is_approved:
                    for event in self._declined(call, verdict, about):
                        yield event
                    continue
                async with aclosing(self._use(call, pending, about)) as using:
                    async for event in using:
                        yield event

    def _allowed(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """The calls as they may be made: a person may have changed them, or said no."""
        free = [call for call in calls if call.id not in self.trail.barred]
        verdicts = [(call, self.trail.verdicts.get(call.id)) for call in free]
        return [v.of(c) if v else c for c, v in verdicts if v is None or v.is_approved]

    def _about(self, call: ToolCall, started: datetime) -> dict[str, Any]:
        step, turn = self._step_of(call), self.trail.turn
        return {"step": step, "turn": turn, "started": started.isoformat()}

    def _step_of(self, call: ToolCall) -> int:
        """The step of the call: it has one if a person was asked about it, or it was begun."""
        step = self.trail.begun.get(call.id) or self.trail.asked.get(call.id)
        if step is None:
            step = self.trail.next_step()
            self.trail.progress.record(call)
        return step

    async def _use(
        self,
        call: ToolCall,
        pending: asyncio.Task[FallbackResult] | None,
        about: dict[str, Any],
    ) -> Events:
        verdict = self.trail.verdicts.get(call.id)
        made = verdict.of(call) if verdict else call
        errand = self._errand(made, about["step"])
        if call.id not in self.trail.begun:
            # A task for another agent changes nothing by itself; what that one calls may.
            effect = "" if errand else self._effect(made)
            yield self._called(made, about, effect=effect)
            for event in self._guarded(made, about, self._findings.get(call.id, ())):
                yield event
        fault_injection.point("P7")
        if errand is not None:
            async with aclosing(errand.events()) as words:
                async for event in words:
                    yield event
            if errand.result is None:
                return
            outcome = await self.toolbox.screened(FallbackResult(result=errand.result))
        else:
            under_way = pending or asyncio.create_task(self.toolbox.use(made))
            outcome = await result_of(under_way, about["step"], self._effect(made))
        fault_injection.point("P9")
        text = _shortened(outcome.result.text)
        observation = verdict.told(text) if verdict else text
        for event in self._observed(made, observation, outcome, about):
            yield event

    def _called(self, call: ToolCall, about: dict[str, Any], **more: Any) -> Event:
        function = {"name": call.name, "arguments": call.arguments}
        return self.trail.emit(Type.TOOL_CALL, id=call.id, function=function, **more, **about)

    def _guarded(
        self, call: ToolCall, about: dict[str, Any], findings: Sequence[GuardrailResult]
    ) -> Iterator[Event]:
        for finding in findings:
            yield guarded(self.trail, finding, tool=call.name, call=about["step"])

    def _effect(self, call: ToolCall) -> Effect:
        registry = self.toolbox.registry
        return effect(registry.get(call.name)) if registry.has(call.name) else "read"

    def _errand(self, call: ToolCall, step: int) -> Errand | None:
        """The call as a task for another agent, where it is one."""
        registry = self.toolbox.registry
        tool = registry.get(call.name) if registry.has(call.name) else None
        if not isinstance(tool, Handoff) or not isinstance(call.readable, dict):
            return None
        return Errand(tool, argument(call.readable, "task"), self.trail, step)

    def _observed(
        self, call: ToolCall, observation: str, outcome: FallbackResult, about: dict[str, Any]
    ) -> Iterator[Event]:
        result, is_error = outcome.result, outcome.result.is_error
        failure = type(outcome.failure).__name__ if outcome.failure else ""
        used = {"stand_in": outcome.stand_in} if outcome.stand_in else {}
        told = {"note": result.note, "is_data": result.is_data and not is_error}
        told |= {"error_type": failure, **used}
        more = {name: value for name, value in told.items() if value}
        yield self._responded(call, observation, is_error, outcome.attempts, about, **more)
        yield from self._guarded(call, about, outcome.findings)
        step = about["step"]
        if outcome.stand_in is not None:
            yield self.trail.emit(
                Type.STATUS,
                kind="tool_fallback",
                tool=call.name,
                stand_in=outcome.stand_in,
                message=outcome.reason,
                step=step,
            )
        if outcome.degraded:
            yield self.trail.emit(Type.STATUS, kind="degraded", tool=call.name, step=step)
        status = "failed" if is_error else "done"
        ended = self.trail.emit.clock.at(outcome.ended).isoformat()
        yield self._step(call, status, observation, about, ended=ended, **used)

    def _barred(self, call: ToolCall, about: dict[str, Any]) -> Iterator[Event]:
        """Not made: a rule says no. The model is told why, and goes on."""
        findings = self._findings[call.id]
        if call.id not in self.trail.begun:
            yield self._called(call, about, effect="", is_barred=True)
            yield from self._guarded(call, about, findings)
        reason = Inspection(findings=findings).result.reason
        observation = (
            f"Error: this call was not made. {reason} "
            "Do not make it again; go on without it, or with other arguments."
        )
        yield self._responded(call, observation, True, 0, about)
        yield self._step(call, "blocked", observation, about)

    def _answered(
        self, call: ToolCall, verdict: Verdict, about: dict[str, Any]
    ) -> Iterator[Event]:
        """A person was asked, and this is what they said."""
        result = verdict.reply(self._why(call) or "question")
        yield self._responded(call, result.text, result.is_error, 1, about)
        yield self._step(call, "rejected" if result.is_error else "done", result.text, about)

    def _declined(
        self, call: ToolCall, verdict: Verdict, about: dict[str, Any]
    ) -> Iterator[Event]:
        """Not made: a person said no, or that it was made before it was cut off."""
        was_made = call.id in self.trail.unsure
        observation = verdict.outcome if was_made else verdict.refusal
        yield self._responded(call, observation, not was_made, 0, about)
        yield self._step(call, "done" if was_made else "rejected", observation, about)

    def _responded(
        self,
        call: ToolCall,
        observation: str,
        is_error: bool,
        attempts: int,
        about: dict[str, Any],
        **more: Any,
    ) -> Event:
        self.trail.close(call, observation)
        self.trail.state.add_step(
            AgentStep(
                thought=self.trail.thought,
                action=call.name,
                action_input=call.readable,
                observation=observation,
            )
        )
        return self.trail.emit(
            Type.TOOL_RESPONSE,
            tool_call_id=call.id,
            name=call.name,
            content_preview=observation[:PREVIEW],
            content=observation,
            is_error=is_error,
            attempts=attempts,
            **more,
            **about,
        )

    def _step(
        self, call: ToolCall, status: str, observation: str, about: dict[str, Any], **more: Any
    ) -> Event:
        return self.trail.emit(
            Type.STEP,
            kind="tool",
            status=status,
            thought=self.trail.thought,
            # Whatever came of it is the work of the tool that was used.
            action=more.get("stand_in") or call.name,
            action_input=call.arguments,
            observation=observation[:PREVIEW],
            **({"called": call.name} if more.pop("stand_in", None) else {}),
            **more,
            **about,
        )


def distinct(calls: Sequence[ToolCall], history: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls with ids of their own: a shared one would join a result to the wrong call."""
    taken = {made["id"] for m in history for made in m.get("tool_calls") or ()} | {"react"}
    unique: list[ToolCall] = []
    for call in calls:
        is_taken = call.id in taken
        unique.append(replace(call, id=f"call_{uuid4().hex[:12]}") if is_taken else call)
        taken.add(unique[-1].id)
    return tuple(unique)


def _shortened(text: str) -> str:
    if len(text) <= MOST_OBSERVATION:
        return text
    cut = len(text) - MOST_OBSERVATION
    return f"{text[:MOST_OBSERVATION]}\n[… {cut:,} more characters were cut]"
