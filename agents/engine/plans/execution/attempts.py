"""Runs one step of a plan: calls, retries and rounds."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from agents.engine.loop.handoff import HANDOFF_PREFIX
from agents.engine.loop.model_calls.sampling import Sampler
from agents.engine.loop.recovery import close_interrupted_calls, mark_uncertain_calls
from agents.engine.loop.tool_calls.approval import ELICITATION, AskPersonTool
from agents.engine.loop.tool_calls.tool_step import ToolStep
from agents.engine.turn.assembly import ToolCall

from ...events import Event, EventType
from ...expressions import interpolate, parse
from ...sentences import Sentence as _
from ...sentences import without_error_prefix
from ...tool import ToolResult
from ..definition.plan import ExecutionStep
from .context import Names, PlanContext
from .evaluation import OutcomeCheck
from .outcome import EvaluationResult, StepOutcome, result_value, to_text

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
            first_attempt = round_index * (self.step.retry + 1) + 1
            for retry in range(self.step.retry + 1):
                attempt = first_attempt + retry
                if retry and self._recorded_response(attempt) is None:
                    await asyncio.sleep(RETRY_SECONDS * 2 ** (retry - 1))
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
                if self.step.expected_outcome and not self._last.is_error:
                    output = result_value(self._last)
                    check = OutcomeCheck(
                        self.context, self.step, output, self.number, attempt, self.names
                    )
                    async with aclosing(check.events()) as events:
                        async for event in events:
                            yield event
                    self._finding = check.finding
                if self._has_succeeded() or not self._may_repeat():
                    break
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
        reason = _(
            "Condition “%(condition)s” wasn't met after %(rounds)s rounds.",
            condition=self.step.until,
            rounds=self.step.rounds,
        )
        self.outcome = self._build_outcome("failed", result_value(self._last), reason)

    def _may_repeat(self) -> bool:
        """Whether no call was made that must happen only once, and nobody declined one."""
        recorded_events = self.context.recorded.tree(self.number)
        calls = [e.data for e in recorded_events if e.type is EventType.TOOL_CALL]
        if any(call.get("effect") == "at_most_once" for call in calls + self._calls):
            return False
        # Decisions before an interruption; rejecting a question isn't one about the step.
        decisions = [e.data for e in recorded_events if e.type is EventType.APPROVAL_RESOLVED]
        return all(
            decision["is_approved"] or decision.get("why") == ELICITATION
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
        name, arguments = self._tool_and_arguments()
        arguments_json = json.dumps(arguments, ensure_ascii=False, default=str)
        call = ToolCall(id=self._call_id(attempt), name=name, arguments=arguments_json)
        run_state = self.context.step_state(self.number, call)
        if (response := self._recorded_response(attempt)) is not None:
            self._last = _to_result(response)
            return None
        mark_uncertain_calls(run_state, self.context.run.tools)
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
        run = self.context.run
        tool_runner = run.new_tool_runner(run_state)
        sampler = Sampler(agent, run_state)
        return ToolStep(run_state, tool_runner, run.approval_policy, agent.guardrails, sampler)

    def _observe(self, event: Event, attempt: int) -> None:
        if event.type is EventType.TOOL_CALL:
            self._calls.append(event.data)
        is_response = event.type is EventType.TOOL_RESPONSE
        if is_response and event.data["tool_call_id"] == self._call_id(attempt):
            self._last = _to_result(event.data)

    def _tool_and_arguments(self) -> tuple[str, dict[str, Any]]:
        """Return the tool that does the step, and its arguments."""
        step = self.step
        arguments: dict[str, Any]
        if step.ask:
            arguments = {"question": to_text(interpolate(step.ask, self.names))}
            if step.role:
                arguments["role"] = step.role
            if step.approves:
                arguments["approves"] = step.approves
            return AskPersonTool.name, arguments
        arguments = interpolate(dict(step.arguments), self.names)
        if step.agent:
            task = to_text(arguments.get("task") or step.name)
            return f"{HANDOFF_PREFIX}{step.agent}", {"task": task}
        return step.tool, arguments

    def _call_id(self, attempt: int) -> str:
        return f"task_{self.number}_{attempt}"

    def _recorded_response(self, attempt: int) -> Mapping[str, Any] | None:
        event = self.context.recorded.response(self._call_id(attempt))
        return None if event is None else event.data


def _to_result(response: Mapping[str, Any]) -> ToolResult:
    content: str = response["content"]
    if response["is_error"]:
        return ToolResult(error=without_error_prefix(content))
    note: str = response.get("note", "")
    output = content.removesuffix(f" ({note})") if note else content
    return ToolResult(output, note=note, is_data=bool(response.get("is_data")))
