"""What is left of limits, for pages and warnings."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from . import counters, limits
from .holds import groups_of
from .limits import Limit
from .payers import Payer
from .windows import window_end


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A limit with what is used and reserved; money in millionths of a dollar, time in ms."""

    limit: Limit
    spent: int
    held: int
    resets_at: datetime

    @property
    def left(self) -> int | None:
        """What is neither used nor reserved; None without a limit."""
        amount = self.limit.amount
        return None if amount is None else max(0, amount - self.spent - self.held)

    @property
    def share(self) -> float:
        """The used part of the limit, from 0 on."""
        amount = self.limit.amount
        return 0.0 if amount is None else self.spent / amount if amount else 1.0


def read(
    user: int | None,
    *,
    agent: int | None = None,
    key: int | None = None,
    model: str = "",
    tool: str = "",
) -> list[BudgetState]:
    """Return the limits that would apply to a user's call now; free of queries without any."""
    if not limits.is_any_set():
        return []
    payer = Payer(user=user, agent=agent, key=key)
    return read_limits(limits.limits_for(payer, groups_of(user), model=model, tool=tool))


def read_limits(chosen: Sequence[Limit]) -> list[BudgetState]:
    """Return the state of these limits, also of values that aren't limited."""
    if not chosen:
        return []
    current_time = timezone.now()
    counts = counters.read(chosen, current_time)
    states = []
    for limit in chosen:
        count = counts[counters.counter_key(limit, current_time)]
        state = BudgetState(
            limit=limit,
            spent=count.spent.get(limit.measure, 0),
            held=count.held.get(limit.measure, 0),
            resets_at=window_end(limit.window, current_time),
        )
        states.append(state)
    return states
