"""Limits across runs, as far as the engine knows them: a gate before each tool call.

Model clients pass the same gate by themselves, because they are called outside of runs, too.
"""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

# Used up, reserved by calls in progress, larger than the whole limit, or without a price.
RefusalReason = Literal["spent", "busy", "too_large", "no_price"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Which limit refused a call; money is in millionths of a dollar, time in ms.

    Trying again helps after `resets_at` if the limit is spent, sooner if it is busy, and never
    if the call is too large for it.
    """

    reason: RefusalReason
    scope: str  # "user", "group", "agent", "model", "tool" or "all"
    name: str  # of the group, agent, model or tool
    measure: str
    window: str
    limit: int
    spent: int = 0
    held: int = 0
    needed: int = 0
    model: str = ""
    resets_at: datetime | None = None

    @property
    def is_final(self) -> bool:
        """Whether trying again later can't help."""
        return self.reason in {"too_large", "no_price"}


class SpendingGate(Protocol):
    """Admits the tool calls of one agent in one run."""

    def tool_call(self, name: str) -> AbstractAsyncContextManager[None]:
        """Reserve a call of this tool and settle it afterwards; raise QuotaExceeded."""
        ...


class NoLimits:
    """The gate of an installation without limits."""

    def tool_call(self, name: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()


NO_LIMITS = NoLimits()
