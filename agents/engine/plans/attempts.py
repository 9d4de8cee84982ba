"""Runs one step of a plan: calls, retries and rounds."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from agents.engine.loop.approval import ELICITATION, AskPersonTool
from agents.engine.loop.handoff import HANDOFF_PREFIX
from agents.engine.loop.recovery import close_interrupted_calls, mark_uncertain_calls
from agents.engine.loop.sampling import Sampler
from agents.engine.loop.termination import find_tool_limits
from agents.engine.loop.tool_runner import ToolRunner
from agents.engine.loop.tool_step import ToolStep
from agents.engine.turn.assembly import ToolCall

from ..events import Event, EventType
from ..expressions import interpolate, parse
from ..tool import ToolResult
from .context import Names, PlanContext
from .evaluation import OutcomeCheck
from .outcome import EvaluationResult, StepOutcome, result_value, to_text
from .plan import ExecutionStep

RETRY_SECONDS = 0.5

Events = AsyncGenerator[Event, None]


class StepAttempts:
    """Runs a step; ends with an `outcome`, unless it waits for a person.

    After an interruption it repeats the same path and uses the recorded results.
    """

    def __init__(
        self, context: PlanContext, step: ExecutionStep, names: Names, number: int
    ) -> None:
        self.context = context
        self.step = step
        self.names = names
        self.number = number
        self.outcome: StepOutcome | None = None
        self._last = ToolResult()
        self._finding: EvaluationResult | None = None
        self._calls: list[Mapping[str, Any]] = []
        self._is_waiting = False  # for a decision about a limit
        self._request: list[Event] = []

    async def events(self) -> Events:
        """Run once, or in rounds until the condition is true; retry in each round."""
        for event in close_interrupted_calls(self.context.step_state(self.number)):
            yield event
        until = parse(self.step.until) if self.step.until else None
        for round_index in range(self.step.rounds if until else 1):
            for attempt in self._round_attempts(round_index):
                await self._back_off(round_index, attempt)
                if (tool_step := self._tool_step(attempt)) is not None:
                    async with aclosing(tool_step.events()) as events:
                        async for event in events:
                            if event.type is EventType.RUN_PAUSED:
                                return
                            self._observe(event, attempt)
                            yield event
                for event in self._request:
                    yield event
                if self.outcome is not None or self._is_waiting:
                    return
                if (check := self._outcome_check(attempt)) is not None:
                    async with aclosing(check.events()) as events:
                        async for event in events:
                            yield event
                    self._finding = check.finding
                if self._has_succeeded() or self._had_side_effects() or self._was_declined():
                    break  # done, must not happen twice, or was declined
            output = result_value(self._last)
            if not self._has_succeeded():
                failure_reason = (
                    self._finding.reason if self._finding else self._last.error or ""
                )
                self.outcome = self._build_outcome("failed", output, failure_reason)
                return
            if until is None or until.value({**self.names, "output": output}):
                self.outcome = self._build_outcome("done", output)
                return
        reason = f"Condition “{self.step.until}” wasn't met after {self.step.rounds} rounds."
        self.outcome = self._build_outcome("failed", result_value(self._last), reason)

    def _round_attempts(self, at: int) -> range:
        most = self.step.retry + 1
        return range(at * most + 1, (at + 1) * most + 1)

    async def _back_off(self, at: int, attempt: int) -> None:
        """Wait before a retry, unless its result is on record."""
        retries = attempt - self._round_attempts(at).start
        if retries and self._recorded_response(attempt) is None:
            await asyncio.sleep(RETRY_SECONDS * 2 ** (retries - 1))

    def _had_side_effects(self) -> bool:
        """Whether a call was made for this step that must not be repeated."""
        before = self.context.recorded.tree(self.number)
        calls = [e.data for e in before if e.type is EventType.TOOL_CALL] + self._calls
        return any(call.get("effect") == "at_most_once" for call in calls)

    def _was_declined(self) -> bool:
        """Whether a person rejected this step or a part of it, before an interruption."""
        recorded_events = self.context.recorded.tree(self.number)
        decisions = [
            event.data for event in recorded_events if event.type is EventType.APPROVAL_RESOLVED
        ]
        return any(
            not decision["is_approved"] and decision.get("why") != ELICITATION
            for decision in decisions
        )

    def _has_succeeded(self) -> bool:
        return not self._last.is_error and (self._finding is None or self._finding.is_met)

    def _build_outcome(self, status: Any, output: Any, reason: str = "") -> StepOutcome:
        return StepOutcome(
            status=status,
            output=output,
            reason=reason,
            number=self.number,
            finding=self._finding,
        )

    def _tool_step(self, attempt: int) -> ToolStep | None:
        """Return the step that makes one call with the usual approvals and guardrails.

        None if its result is on record, or if a limit is reached: that is the outcome, unless
        a person decides about it.
        """
        self._finding = None
        agent = self.context.agent
        call = self._tool_call(attempt)
        run_state = self.context.step_state(self.number, call)
        if (response := self._recorded_response(attempt)) is not None:
            self._last = _to_result(response)
            return None
        mark_uncertain_calls(run_state, agent.tools)
        is_new = (
            call.id not in run_state.started_calls
            and call.id not in run_state.requested_approvals
        )
        if is_new and (request := self.context.limit_request(self.number)) is not None:
            self._is_waiting = True
            self._request = request
            return None
        if is_new and (
            why := self.context.reached_limit() or self.context.exceeded_tool_limit(call.name)
        ):
            self.outcome = self._build_outcome("failed", result_value(self._last), why)
            return None
        guardrails = agent.guardrails
        runner = ToolRunner(
            agent.tools,
            agent.fallback,
            circuits=agent.circuits,
            guardrails=guardrails,
            attachments=agent.attachments,
            spending=agent.spending,
            claim_stand_in=partial(run_state.claim_stand_in, find_tool_limits(agent.policy)),
        )
        sampler = Sampler(agent, run_state)
        return ToolStep(run_state, runner, agent.approval_policy, guardrails, sampler)

    def _observe(self, event: Event, attempt: int) -> None:
        if event.type is EventType.TOOL_CALL:
            self._calls.append(event.data)
        is_response = event.type is EventType.TOOL_RESPONSE
        if is_response and event.data["tool_call_id"] == self._call_id(attempt):
            self._last = _to_result(event.data)

    def _outcome_check(self, attempt: int) -> OutcomeCheck | None:
        if self._last.is_error or not self.step.expected_outcome:
            return None
        output = result_value(self._last)
        return OutcomeCheck(self.context, self.step, output, self.number, attempt, self.names)

    def _tool_call(self, attempt: int) -> ToolCall:
        name, arguments = self._tool_and_arguments()
        written = json.dumps(arguments, ensure_ascii=False, default=str)
        return ToolCall(id=self._call_id(attempt), name=name, arguments=written)

    def _tool_and_arguments(self) -> tuple[str, dict[str, Any]]:
        """Return the tool that does the step, and its arguments."""
        step = self.step
        if step.ask:
            about = {"role": step.role, "approves": step.approves}
            values = {name: value for name, value in about.items() if value}
            return AskPersonTool.name, {
                "question": to_text(interpolate(step.ask, self.names)),
                **values,
            }
        arguments = interpolate(dict(step.arguments), self.names)
        if step.agent:
            return f"{HANDOFF_PREFIX}{step.agent}", {
                "task": to_text(arguments.get("task") or step.name)
            }
        return step.tool, arguments

    def _call_id(self, attempt: int) -> str:
        return f"task_{self.number}_{attempt}"

    def _recorded_response(self, attempt: int) -> Mapping[str, Any] | None:
        event = self.context.recorded.response(self._call_id(attempt))
        return None if event is None else event.data


def _to_result(response: Mapping[str, Any]) -> ToolResult:
    content: str = response["content"]
    if response["is_error"]:
        return ToolResult(error=content.removeprefix("Error: "))
    note: str = response.get("note", "")
    output = content.removesuffix(f" ({note})") if note else content
    return ToolResult(output, note=note, is_data=bool(response.get("is_data")))
