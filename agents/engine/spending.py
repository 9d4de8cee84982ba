"""Limits across runs, as far as the engine knows them: why one has refused a call."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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
