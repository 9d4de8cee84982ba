"""Policies that decide when a run continues and when it ends."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic
from typing import Any, Protocol

from agents.engine.errors import (
    AgentError,
    BudgetExceeded,
    DuplicateToolCall,
    GuardrailBlocked,
    MaxStepsExceeded,
    QuotaExceeded,
    RunCancelled,
    ToolCallLimitReached,
    ToolExecutionFailed,
)
from agents.engine.turn.assembly import PlanResult, ToolCall

from ..sentences import Sentence as _
from .capability import Capability
from .model_calls.usage import RunUsage
from .run_limits import LimitDecisions, Measure, RunLimit


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


# The error for each stop reason; other reasons aren't errors.
ERRORS: Mapping[StopReason, type[AgentError]] = {
    StopReason.MAX_STEPS: MaxStepsExceeded,
    StopReason.DEGRADED: ToolExecutionFailed,
    StopReason.BLOCKED: GuardrailBlocked,
    StopReason.CANCELLED: RunCancelled,
    StopReason.DUPLICATE: DuplicateToolCall,
    StopReason.TOOL_LIMIT: ToolCallLimitReached,
    StopReason.BUDGET: BudgetExceeded,
    StopReason.ERROR: AgentError,
    StopReason.INTERRUPTED: AgentError,
}


def stop_reason(error: AgentError) -> StopReason:
    """Return the stop reason for this error."""
    if isinstance(error, QuotaExceeded):
        return StopReason.BUDGET
    reasons = (reason for reason, kind in ERRORS.items() if type(error) is kind)
    return next(reasons, StopReason.ERROR)


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
class WorkTime:
    """How long a run has worked, without the time it waited for people."""

    began: float = field(default_factory=monotonic)
    _waits: int = 0
    _since: float = 0.0

    @property
    def seconds(self) -> float:
        return (self._since if self._waits else monotonic()) - self.began

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Don't count the time in this block; several can overlap."""
        if not self._waits:
            self._since = monotonic()
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                self.began += monotonic() - self._since


@dataclass(slots=True)
class Progress:
    """What a run has done so far: its tool calls and usage.

    `calls` are those that were decided on, `recorded` their ids. `stand_ins` are calls of a
    tool in place of another one.
    """

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    used: RunUsage = field(default_factory=RunUsage)
    time: WorkTime = field(default_factory=WorkTime)
    limit_decisions: LimitDecisions = field(default_factory=LimitDecisions)
    stand_ins: Counter[str] = field(default_factory=Counter)
    recorded: set[str] = field(default_factory=set)

    @property
    def seconds(self) -> float:
        return self.time.seconds

    def record(self, call: ToolCall) -> None:
        self.calls[call.name, canonical_json(call.arguments)] += 1
        self.recorded.add(call.id)

    def record_response(self, data: Mapping[str, Any]) -> None:
        """Count the calls in place of another tool that a `tool_response` reports."""
        self.stand_ins.update(data[key] for key in ("stand_in", "tried") if data.get(key))

    def count_equal(self, call: ToolCall) -> int:
        return self.calls[call.name, canonical_json(call.arguments)]

    def per_tool(self) -> Counter[str]:
        totals: Counter[str] = Counter()
        for (name, _arguments), times in self.calls.items():
            totals[name] += times
        return totals

    def total(self) -> int:
        return self.calls.total()


class TerminationPolicy(Protocol):
    def decide(self, plan: PlanResult, progress: Progress) -> Decision: ...


class StandardTerminationPolicy:
    """Continues while there are calls; text without calls is the answer."""

    def decide(self, plan: PlanResult, progress: Progress) -> Decision:
        if plan.calls:
            return ContinueWithTools(plan.calls)
        if plan.final_answer is not None:
            return TerminateWithOutput(plan.final_answer)
        return ContinueWithThinking()


class DuplicateDetectionPolicy:
    """Ends a run that repeats the same call with the same input."""

    def __init__(self, inner: TerminationPolicy | None = None, max_duplicates: int = 2) -> None:
        self.inner = inner or StandardTerminationPolicy()
        self.max_duplicates = max_duplicates

    def decide(self, plan: PlanResult, progress: Progress) -> Decision:
        decision = self.inner.decide(plan, progress)
        if not isinstance(decision, ContinueWithTools):
            return decision
        counted = Progress(Counter(progress.calls))
        for call in decision.calls:
            if counted.count_equal(call) >= self.max_duplicates:
                times = self.max_duplicates + 1
                return TerminateImmediately(
                    StopReason.DUPLICATE,
                    _(
                        "The agent called %(tool)s %(times)s times with the same arguments.",
                        tool=repr(call.name),
                        times=times,
                    ),
                )
            counted.record(call)
        return decision


class ToolCallLimitPolicy:
    """Ends a run that calls one tool too often.

    None means no limit. `limits` are per tool and override the general one.
    """

    def __init__(
        self,
        inner: TerminationPolicy | None = None,
        max_calls_per_tool: int | None = 5,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self.inner = inner or StandardTerminationPolicy()
        self.max_calls_per_tool = max_calls_per_tool
        self.limits = limits or {}

    def decide(self, plan: PlanResult, progress: Progress) -> Decision:
        decision = self.inner.decide(plan, progress)
        if not isinstance(decision, ContinueWithTools):
            return decision
        totals = progress.per_tool() + Counter(call.name for call in decision.calls)
        for name, times in totals.items():
            limit = self.limits.get(name, self.max_calls_per_tool)
            # The general limit ends loops of the model, which decides on no stand-ins.
            stand_ins = progress.stand_ins[name] if name in self.limits else 0
            if limit is not None and times + stand_ins > limit:
                return TerminateImmediately(StopReason.TOOL_LIMIT, limit_message(name, limit))
        return decision


class Termination(Capability):
    """When a run ends, by this policy."""

    def __init__(self, policy: TerminationPolicy | None = None) -> None:
        self.policy = policy or standard_policy()


def find_tool_limits(policy: TerminationPolicy | None) -> Mapping[str, int]:
    """Return the call limits per tool, if any are set."""
    while policy is not None:
        if isinstance(policy, ToolCallLimitPolicy):
            return policy.limits
        policy = getattr(policy, "inner", None)
    return {}


def most_equal_calls(policy: TerminationPolicy | None) -> int | None:
    """Return how many equal calls a run can make; None if it has no limit."""
    while policy is not None:
        if isinstance(policy, DuplicateDetectionPolicy):
            return policy.max_duplicates
        policy = getattr(policy, "inner", None)
    return None


def limit_message(name: str, limit: int) -> str:
    return _(
        "The agent can call %(tool)s up to %(times)s times per run.",
        tool=repr(name),
        times=limit,
    )


class BudgetPolicy:
    """Ends a run that has used up its time, tokens or money, or has a person asked first.

    None means no limit. It is checked between turns, so a finished answer is never discarded.
    The limits belong to `owner`, an agent. Its user can raise each of them up to `most_times`
    of its amount; with 0 the run never asks.
    """

    def __init__(
        self,
        inner: TerminationPolicy | None = None,
        *,
        max_seconds: float | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        owner: str = "",
        most_times: int = 0,
    ) -> None:
        self.inner = inner or StandardTerminationPolicy()
        self.max_seconds = max_seconds
        self.max_tokens = max_tokens
        self.max_cost = max_cost
        self.owner = owner
        self.most_times = most_times

    def decide(self, plan: PlanResult, progress: Progress) -> Decision:
        decision = self.inner.decide(plan, progress)
        if self.most_times:
            return decision  # the run asks before it ends
        message = self.reached_limit(progress)
        if message and isinstance(decision, ContinueWithTools | ContinueWithThinking):
            return TerminateImmediately(StopReason.BUDGET, message)
        return decision

    def reached_limit(self, progress: Progress) -> str:
        """Return which limit is reached, or an empty string."""
        return next((limit.message for limit in self.limits(progress) if limit.is_reached), "")

    def limits(self, progress: Progress) -> Iterator[RunLimit]:
        """Yield the limits as they are now, with what people decided about them."""
        used = progress.used
        if self.max_seconds is not None:
            yield self._limit("seconds", self.max_seconds, progress.seconds, 0, progress)
        if self.max_tokens is not None:
            tokens = used.total_tokens
            yield self._limit("tokens", self.max_tokens, tokens, used.last_tokens, progress)
        if self.max_cost is not None and used.cost is not None:
            yield self._limit("cost", self.max_cost, used.cost, used.last_cost, progress)

    def _limit(
        self, measure: Measure, base: float, spent: float, wanted: float, progress: Progress
    ) -> RunLimit:
        decisions = progress.limit_decisions
        key = (self.owner, measure)
        return RunLimit(
            owner=self.owner,
            measure=measure,
            base=base,
            limit=base * (1 + decisions.raises[key]),
            spent=spent,
            wanted=wanted,
            most_times=self.most_times,
            is_pending=decisions.is_pending(key),
            ending=decisions.endings.get(key),
        )


def due_limit(budgets: Iterable[BudgetPolicy], progress: Progress) -> RunLimit | None:
    """Return the first limit that lets nothing more start, or None."""
    limits = (limit for budget in budgets for limit in budget.limits(progress))
    return next((limit for limit in limits if limit.is_due), None)


def standard_policy(
    max_duplicate_tool_calls: int = 2,
    max_tool_calls_per_tool: int | None = 5,
    *,
    tool_limits: Mapping[str, int] | None = None,
    max_seconds: float | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    owner: str = "",
    most_times: int = 0,
) -> TerminationPolicy:
    duplicate_policy = DuplicateDetectionPolicy(max_duplicates=max_duplicate_tool_calls)
    return BudgetPolicy(
        ToolCallLimitPolicy(duplicate_policy, max_tool_calls_per_tool, tool_limits),
        max_seconds=max_seconds,
        max_tokens=max_tokens,
        max_cost=max_cost,
        owner=owner,
        most_times=most_times,
    )


def canonical_json(arguments: str | Mapping[str, object]) -> str:
    """Return the same text for equal input, regardless of spacing and key order."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return str(arguments).strip()
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
