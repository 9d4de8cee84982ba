"""Requests of runs at their limits, for display."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..formats.formatting import cost


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRequestView:
    """A limit that a run has reached or would pass, with what it has spent."""

    measure: str
    agent: str
    limit: float
    spent: float
    wanted: float
    raised: float

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "LimitRequestView":
        """Return the request as far as it is readable: a masked one may not be."""
        numbers = {name: _number(facts.get(name)) for name in ("limit", "spent", "wanted")}
        return cls(
            measure=str(facts.get("measure", "")),
            agent=str(facts.get("limit_of", "")),
            raised=_number(facts.get("raised")),
            **numbers,
        )

    @property
    def title(self) -> str:
        params = {"agent": self.agent}
        match self.measure, self.spent >= self.limit:
            case "seconds", _is_reached:
                return _("%(agent)s has reached its time limit") % params
            case "tokens", True:
                return _("%(agent)s has reached its token limit") % params
            case "tokens", False:
                return _("%(agent)s would exceed its token limit") % params
            case _, True:
                return _("%(agent)s has reached its cost limit") % params
        return _("%(agent)s would exceed its cost limit") % params

    @property
    def question(self) -> str:
        """What is asked, for those who can raise the limit."""
        return _("Raise the limit to %(limit)s?") % {"limit": self.amount(self.raised)}

    @property
    def summary(self) -> str:
        is_count = self.measure == "tokens"
        spent = f"{round(self.spent):,}" if is_count else self.amount(self.spent)
        params = {"spent": spent, "limit": self.amount(self.limit)}
        return _("%(spent)s of %(limit)s used.") % params

    @property
    def sentence(self) -> str:
        """What is used, and what the next call needs."""
        if not self.wanted or self.spent >= self.limit:
            return self.summary
        needs = _("The next call needs about %(wanted)s.") % {
            "wanted": self.amount(self.wanted)
        }
        return f"{self.summary} {needs}"

    @property
    def raise_label(self) -> str:
        return _("Raise to %(limit)s") % {"limit": self.amount(self.raised)}

    @property
    def percent(self) -> int:
        return 100 if not self.limit else min(100, round(100 * self.spent / self.limit))

    def amount(self, value: float) -> str:
        """Return an amount with its unit."""
        if self.measure == "cost":
            return cost(value)
        if self.measure == "seconds":
            return _("%(seconds)s s") % {"seconds": f"{value:,.0f}"}
        token_count = round(value)
        text = ngettext("%(count)s token", "%(count)s tokens", token_count)
        return text % {"count": f"{token_count:,}"}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
