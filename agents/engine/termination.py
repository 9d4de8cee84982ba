"""When a run goes on and when it ends: decisions as values, rules that wrap one another."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from .turn import PlanResult, ToolCall


class StopReason(StrEnum):
    COMPLETED = "completed"
    MAX_STEPS = "max_steps_reached"
    DEGRADED = "tool_failure_degraded"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    DUPLICATE = "duplicate_tool_call"
    TOOL_LIMIT = "tool_call_limit"
    BUDGET = "budget_exceeded"
    ERROR = "error"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class ContinueWithTools:
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ContinueWithThinking:
    pass


@dataclass(frozen=True, slots=True)
class TerminateWithOutput:
    text: str


@dataclass(frozen=True, slots=True)
class TerminateImmediately:
    reason: StopReason
    detail: str = ""


Decision = ContinueWithTools | ContinueWithThinking | TerminateWithOutput | TerminateImmediately


@dataclass(slots=True)
class CallHistory:
    """Which tools were called in this run, and with what."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    def record(self, call: ToolCall) -> None:
        self.calls[call.name, canonical(call.arguments)] += 1

    def equal_to(self, call: ToolCall) -> int:
        return self.calls[call.name, canonical(call.arguments)]

    def per_tool(self) -> Counter[str]:
        totals: Counter[str] = Counter()
        for (name, _), times in self.calls.items():
            totals[name] += times
        return totals

    def total(self) -> int:
        return self.calls.total()


class TerminationPolicy(Protocol):
    def decide(self, plan: PlanResult, history: CallHistory) -> Decision: ...


class StandardTerminationPolicy:
    """Calls go on whatever stop reason came with them; words without calls are the answer."""

    def decide(self, plan: PlanResult, history: CallHistory) -> Decision:
        if plan.calls:
            return ContinueWithTools(plan.calls)
        if plan.final_answer is not None:
            return TerminateWithOutput(plan.final_answer)
        return ContinueWithThinking()


class DuplicateDetectionPolicy:
    """Ends a run that asks the same of the same tool again and again."""

    def __init__(self, inner: TerminationPolicy | None = None, max_duplicates: int = 2) -> None:
        self.inner = inner or StandardTerminationPolicy()
        self.max_duplicates = max_duplicates

    def decide(self, plan: PlanResult, history: CallHistory) -> Decision:
        decision = self.inner.decide(plan, history)
        if not isinstance(decision, ContinueWithTools):
            return decision
        asked = CallHistory(Counter(history.calls))
        for call in decision.calls:
            if asked.equal_to(call) >= self.max_duplicates:
                return TerminateImmediately(
                    StopReason.DUPLICATE,
                    f"The agent asked {call.name!r} the same {self.max_duplicates + 1} times.",
                )
            asked.record(call)
        return decision


class ToolCallLimitPolicy:
    """Ends a run that calls one tool too often. None is no limit."""

    def __init__(
        self, inner: TerminationPolicy | None = None, max_calls_per_tool: int | None = 5
    ) -> None:
        self.inner = inner or StandardTerminationPolicy()
        self.max_calls_per_tool = max_calls_per_tool

    def decide(self, plan: PlanResult, history: CallHistory) -> Decision:
        decision = self.inner.decide(plan, history)
        if self.max_calls_per_tool is None or not isinstance(decision, ContinueWithTools):
            return decision
        totals = history.per_tool() + Counter(call.name for call in decision.calls)
        for name, times in totals.items():
            if times > self.max_calls_per_tool:
                return TerminateImmediately(
                    StopReason.TOOL_LIMIT,
                    f"The agent may call {name!r} {self.max_calls_per_tool} times in a run.",
                )
        return decision


def standard_policy(
    max_duplicate_tool_calls: int = 2, max_tool_calls_per_tool: int | None = 5
) -> TerminationPolicy:
    return ToolCallLimitPolicy(
        DuplicateDetectionPolicy(max_duplicates=max_duplicate_tool_calls),
        max_tool_calls_per_tool,
    )


def canonical(arguments: str | Mapping[str, object]) -> str:
    """The same text for the same input, whatever its spacing and the order of its keys."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return str(arguments).strip()
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
