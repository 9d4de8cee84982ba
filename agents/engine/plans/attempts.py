"""The work that one step of a plan takes: calls, again where they fail, round after round."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from agents.engine.loop.approval import AskPerson
from agents.engine.loop.handoff import ASKS
from agents.engine.loop.recovery import doubt, mend
from agents.engine.loop.tool_runner import Toolbox
from agents.engine.loop.tool_step import Acting
from agents.engine.turn.assembly import ToolCall

from ..events import Event, Type
from ..expressions import filled, parse
from ..tool import ToolResult
from .context import Names, Site
from .evaluation import Check
from .outcome import Finding, Outcome, output_of, text_of
from .plan import ExecutionStep

PAUSE = 0.5

Events = AsyncGenerator[Event, None]


class Effort:
    """Afterwards there is an `outcome`, unless a person is waited for.

    It goes the same way again after it was cut off, and takes what is on record as it is.
    """

    def __init__(self, site: Site, step: ExecutionStep, names: Names, number: int) -> None:
        self.site = site
        self.step = step
        self.names = names
        self.number = number
        self.outcome: Outcome | None = None
        self._is_waiting = False
        self._last = ToolResult()
        self._finding: Finding | None = None
        self._calls: list[Mapping[str, Any]] = []

    async def events(self) -> Events:
        """Until it is true, where that is asked for; else once."""
        for event in mend(self.site.trail_of(self.number)):
            yield event
        until = parse(self.step.until) if self.step.until else None
        for at in range(self.step.rounds if until else 1):
            async with aclosing(self._round(at)) as attempts:
                async for event in attempts:
                    yield event
            if self._is_waiting or self.outcome is not None:
                return
            output = output_of(self._last)
            if until is None or until.value({**self.names, "output": output}):
                self.outcome = self._ended("done", output)
                return
        late = f"“{self.step.until}” did not come true in {self.step.rounds} rounds."
        self.outcome = self._ended("failed", output_of(self._last), late)

    async def _round(self, at: int) -> Events:
        """Attempts, until one gives what is expected; after the last of them it has failed."""
        most = self.step.retry + 1
        for attempt in range(at * most + 1, (at + 1) * most + 1):
            if attempt > at * most + 1 and self._response(attempt) is None:
                await asyncio.sleep(PAUSE * 2 ** (attempt - at * most - 2))
            async with aclosing(self._attempt(attempt)) as events:
                async for event in events:
                    yield event
            if self._is_waiting or self.outcome is not None or self._is_well():
                return
            if self._did_harm() or self._was_declined():
                break  # it must not happen twice, or not at all: nobody is asked again
        why = self._finding.reason if self._finding else self._last.error or ""
        self.outcome = self._ended("failed", output_of(self._last), why)

    def _did_harm(self) -> bool:
        """Whether a call was made for it, by whomever, that must not be repeated."""
        before = self.site.past.tree(self.number)
        calls = [e.data for e in before if e.type is Type.TOOL_CALL] + self._calls
        return any(call.get("effect") == "at_most_once" for call in calls)

    def _was_declined(self) -> bool:
        """Whether a person said no to it, or to a part of it; that was before it went on."""
        before = self.site.past.tree(self.number)
        words = [e.data for e in before if e.type is Type.APPROVAL_RESOLVED]
        return any(not word["is_approved"] for word in words)

    def _is_well(self) -> bool:
        return not self._last.is_error and (self._finding is None or self._finding.is_met)

    def _ended(self, status: Any, output: Any, reason: str = "") -> Outcome:
        return Outcome(
            status=status,
            output=output,
            reason=reason,
            number=self.number,
            finding=self._finding,
        )

    async def _attempt(self, attempt: int) -> Events:
        self._finding = None
        async with aclosing(self._call(attempt)) as call:
            async for event in call:
                yield event
        if self._is_waiting or self.outcome is not None:
            return
        if self._last.is_error or not self.step.expected_outcome:
            return
        output = output_of(self._last)
        check = Check(self.site, self.step, output, self.number, attempt, self.names)
        async with aclosing(check.events()) as checking:
            async for event in checking:
                yield event
        self._finding = check.finding

    async def _call(self, attempt: int) -> Events:
        """One call, by the road that all calls go: people are asked, outcomes doubted."""
        agent, call = self.site.agent, self._wanted(attempt)
        trail = self.site.trail_of(self.number, call)
        if (known := self._response(attempt)) is not None:
            self._last = _result(known)
            return
        doubt(trail, agent.tools)
        is_new = call.id not in trail.begun and call.id not in trail.asked
        if is_new and (why := self.site.spent() or self.site.exceeded(call.name)):
            self.outcome = self._ended("failed", output_of(self._last), why)
            return
        rules = agent.guardrails
        toolbox = Toolbox(
            agent.tools, agent.fallback, circuits=agent.circuits, guardrails=rules
        )
        acting = Acting(trail, toolbox, agent.asking, rules)
        async with aclosing(acting.events()) as events:
            async for event in events:
                if event.type is Type.RUN_PAUSED:
                    self._is_waiting = True
                    return
                if event.type is Type.TOOL_CALL:
                    self._calls.append(event.data)
                if event.type is Type.TOOL_RESPONSE and event.data["tool_call_id"] == call.id:
                    self._last = _result(event.data)
                yield event

    def _wanted(self, attempt: int) -> ToolCall:
        name, arguments = self._tool()
        written = json.dumps(arguments, ensure_ascii=False, default=str)
        return ToolCall(id=self._call_id(attempt), name=name, arguments=written)

    def _tool(self) -> tuple[str, dict[str, Any]]:
        """Who does it, as a tool, and what it is given."""
        step = self.step
        if step.ask:
            about = {"role": step.role, "approves": step.approves}
            said = {name: value for name, value in about.items() if value}
            return AskPerson.name, {"question": text_of(filled(step.ask, self.names)), **said}
        arguments = filled(dict(step.arguments), self.names)
        if step.agent:
            return f"{ASKS}{step.agent}", {"task": text_of(arguments.get("task") or step.name)}
        return step.tool, arguments

    def _call_id(self, attempt: int) -> str:
        return f"task_{self.number}_{attempt}"

    def _response(self, attempt: int) -> Mapping[str, Any] | None:
        event = self.site.past.response(self._call_id(attempt))
        return None if event is None else event.data


def _result(response: Mapping[str, Any]) -> ToolResult:
    content: str = response["content"]
    if response["is_error"]:
        return ToolResult(error=content.removeprefix("Error: "))
    note: str = response.get("note", "")
    output = content.removesuffix(f" ({note})") if note else content
    return ToolResult(output, note=note, is_data=bool(response.get("is_data")))
