"""A run's own limits, and what people decided about them: raised, finished or stopped."""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

from agents.engine.events import Event, EventType

from ..sentences import Sentence as _

Measure = Literal["seconds", "tokens", "cost"]
LimitAction = Literal["raise", "finish", "stop"]
LimitKey = tuple[str, str]  # whose limit it is, and of what

BUDGET: Literal["budget"] = "budget"  # the reason of these approvals, and the kind of their row
RAISE_TOOL = "raise_limit"
# Who decides about more than the run's user may: people with the right to raise budgets.
APPROVERS = "raise_budgets"


@dataclass(slots=True)
class LimitDecisions:
    """What people decided about a run's limits; all its agents share it.

    `raises` is how many times the original amount was added, `endings` the limits at which the
    run finishes or stops, `requests` those without a decision, by call, and `unended` the
    requests whose row is still open.
    """

    raises: Counter[LimitKey] = field(default_factory=Counter)
    endings: dict[LimitKey, LimitAction] = field(default_factory=dict)
    requests: dict[str, LimitKey] = field(default_factory=dict)
    unended: dict[str, tuple[Event, LimitAction | None]] = field(default_factory=dict)

    def record(self, event: Event) -> None:
        """Apply a recorded event about a limit."""
        data = event.data
        match event.type:
            case EventType.APPROVAL_REQUESTED:
                self.requests[data["id"]] = (data["limit_of"], data["measure"])
                self.unended[data["id"]] = event, None
            case EventType.APPROVAL_RESOLVED if data["id"] in self.requests:
                key = self.requests.pop(data["id"])
                request, _ = self.unended[data["id"]]
                default: LimitAction = "raise" if data["is_approved"] else "finish"
                action: LimitAction = data.get("action") or default
                self.unended[data["id"]] = request, action
                if action == "raise":
                    self.raises[key] += request.data["times"]
                else:
                    self.endings[key] = action
            case EventType.STEP:
                self.unended = {
                    id: (request, action)
                    for id, (request, action) in self.unended.items()
                    if request.data["step"] != data["step"]
                }

    def is_pending(self, key: LimitKey) -> bool:
        return key in self.requests.values()


def is_about_limit(event: Event) -> bool:
    """Whether the event is a request about a run's limit, its decision, or its row's end."""
    return event.data.get("why") == BUDGET or event.data.get("kind") == BUDGET


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimit:
    """One limit of a run as it is now: its amount with all raises, and what is spent.

    `wanted` is what the next call is likely to use. `most_times` is up to how many times the
    original amount the run's user can raise it; with 0 the run never asks.
    """

    owner: str
    measure: Measure
    base: float
    limit: float
    spent: float
    wanted: float = 0
    most_times: int = 0
    is_pending: bool = False
    ending: LimitAction | None = None

    @property
    def key(self) -> LimitKey:
        return self.owner, self.measure

    @property
    def asks(self) -> bool:
        """Whether a person can still decide about it."""
        return self.most_times > 0 and self.ending is None

    @property
    def is_reached(self) -> bool:
        return self.spent >= self.limit

    @property
    def is_due(self) -> bool:
        """Whether nothing more can start: reached, decided, or the next call wouldn't fit."""
        if self.is_reached or self.is_pending or self.ending is not None:
            return True
        return self.most_times > 0 and self.spent + self.wanted > self.limit

    @property
    def times(self) -> int:
        """How many times the original amount is missing, so that the next call fits."""
        missing = self.spent + self.wanted - self.limit
        return max(1, ceil(missing / self.base)) if self.base > 0 else 1

    @property
    def raised(self) -> float:
        """The limit after a raise."""
        return self.limit + self.times * self.base

    @property
    def needs_approver(self) -> bool:
        """Whether a raise is more than the run's user can decide."""
        return self.raised > self.most_times * self.base

    @property
    def message(self) -> str:
        match self.measure:
            case "seconds":
                return _(
                    "The run reached its time limit (%(limit)s s).", limit=f"{self.limit:g}"
                )
            case "tokens":
                return _(
                    "The run reached its token limit (%(limit)s tokens).",
                    limit=f"{self.limit:,.0f}",
                )
        return _("The run reached its cost limit ($%(limit)s).", limit=f"{self.limit:g}")

    def to_dict(self) -> dict[str, Any]:
        """Return the request as it is saved and displayed."""
        return {
            "limit_of": self.owner,
            "measure": self.measure,
            "limit": self.limit,
            "spent": round(self.spent, 6),
            "wanted": round(self.wanted, 6),
            "times": self.times,
            "raised": self.raised,
        }
