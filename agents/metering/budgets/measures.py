"""The table of what limits count: how each is held, read from rows, entered and written.

Limits, counters, forms and sentences follow from it; an unknown measure raises.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import Count, F, Sum

from agents.db.installation.setting import MICROS
from agents.db.sentences import translate
from agents.engine.sentences import Sentence
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import context_sentence as pgettext
from agents.engine.sentences import plural_sentence as ngettext
from agents.models import Quota

Measure = Quota.Measure
Window = Quota.Window
MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetMeasure:
    """What a limit counts.

    A form takes `typed` numbers for one of a row's limit, which is `counted` in a counter.
    """

    key: str
    amount: Callable[[int], Sentence]  # the form of an amount: “3 tokens”
    limit: Callable[[int], Sentence]  # the form of a limit: “3 tokens per day”
    recorded: Any = None  # what runs say about it, if they do
    is_held: bool = True  # calls use it, so it is reserved; else it is counted when saved
    typed: int = 1
    counted: int = 1
    number: Callable[[int], str] = "{:,}".format
    short: str = "{}"  # around a number without its unit

    @property
    def unit(self) -> int:
        """How much of a counter is written as 1."""
        return self.typed * self.counted

    @property
    def used_column(self) -> str:
        """Where a hold has what its call has used so far: one that has begun is a call."""
        return self.key if self.key == Measure.CALLS else f"used_{self.key}"


def _money(amount: int) -> str:
    """Return millionths of a dollar as dollars, with more digits if it is very little."""
    dollars = amount / MICROS
    return f"{dollars:,.2f}" if amount % 10_000 == 0 or dollars >= 1 else f"{dollars:,.4f}"


TABLE = (
    BudgetMeasure(
        key=Measure.RUNS.value,
        is_held=False,
        recorded=Count("pk"),
        amount=lambda n: ngettext("%(count)s run", "%(count)s runs", n),
        limit=lambda n: ngettext(
            "%(count)s run per %(window)s", "%(count)s runs per %(window)s", n
        ),
    ),
    BudgetMeasure(
        key=Measure.MESSAGES.value,
        is_held=False,
        amount=lambda n: ngettext("%(count)s message", "%(count)s messages", n),
        limit=lambda n: ngettext(
            "%(count)s message per %(window)s", "%(count)s messages per %(window)s", n
        ),
    ),
    BudgetMeasure(
        key=Measure.CALLS.value,
        recorded=Sum(F("turns") + F("tool_calls")),
        amount=lambda n: ngettext("%(count)s call", "%(count)s calls", n),
        limit=lambda n: ngettext(
            "%(count)s call per %(window)s", "%(count)s calls per %(window)s", n
        ),
    ),
    BudgetMeasure(
        key=Measure.TOKENS.value,
        recorded=Sum(F("prompt_tokens") + F("completion_tokens")),
        amount=lambda n: ngettext("%(count)s token", "%(count)s tokens", n),
        limit=lambda n: ngettext(
            "%(count)s token per %(window)s", "%(count)s tokens per %(window)s", n
        ),
    ),
    BudgetMeasure(
        key=Measure.COST.value,
        recorded=Sum("cost"),
        typed=MICROS,
        number=_money,
        short="${}",
        amount=lambda _n: Sentence("$%(amount)s"),
        limit=lambda _n: _("$%(amount)s per %(window)s"),
    ),
    BudgetMeasure(
        key=Measure.SECONDS.value,
        recorded=Sum(F("seconds") - F("waited")),
        counted=MILLISECONDS,
        number=lambda amount: f"{amount / MILLISECONDS:,.0f}",
        short="{} s",
        amount=lambda _n: _("%(count)s s"),
        limit=lambda _n: _("%(count)s s of active time per %(window)s"),
    ),
)
MEASURES: dict[str, BudgetMeasure] = {measure.key: measure for measure in TABLE}
# What calls use. Runs and messages are counted where they are saved.
HELD = tuple(measure.key for measure in TABLE if measure.is_held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a call will use at least, and what it may use; cost in millionths of a dollar.

    The cost is None if the model has no known price.
    """

    calls: int = 1
    tokens: int = 0
    cost: int | None = 0
    seconds: int = 0  # in ms, as in counters
    least_tokens: int = 0  # the input
    least_cost: int = 0

    def held(self) -> dict[str, int]:
        return {key: getattr(self, key) or 0 for key in HELD}

    def least(self) -> dict[str, int]:
        """Return what a call is sure to use: it is one, and has an input."""
        return {key: getattr(self, f"least_{key}", 0) for key in HELD} | {"calls": self.calls}


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a call has used; cost in millionths of a dollar, time in ms."""

    calls: int = 1
    tokens: int = 0
    cost: int = 0
    seconds: int = 0

    def amounts(self) -> dict[str, int]:
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class Meter:
    """What a call has used so far; the caller sets `tokens` and `cost`.

    `counters` are those that it is counted in.
    """

    tokens: int = 0
    cost: int = 0
    calls: int = 1
    is_reported: bool = False
    counters: frozenset[int] = frozenset()
    began: float = field(default_factory=time.monotonic)

    def used(self) -> Used:
        return Used(
            calls=self.calls, tokens=self.tokens, cost=self.cost, seconds=self.milliseconds
        )

    @property
    def milliseconds(self) -> int:
        return round((time.monotonic() - self.began) * MILLISECONDS)


def counted_amount(measure: str, limit: int | None) -> int | None:
    """Return a row's limit in the unit of counters."""
    return None if limit is None else limit * MEASURES[measure].counted


def short_amount(measure: str, amount: int) -> str:
    """Return an amount without a unit, except for money and time."""
    return MEASURES[measure].short.format(MEASURES[measure].number(amount))


def amount_sentence(measure: str, amount: int) -> Sentence:
    """Return an amount with its unit."""
    number = MEASURES[measure].number(amount)
    return MEASURES[measure].amount(amount).fill(count=number, amount=number)


def limit_sentence(measure: str, amount: int, window: str) -> Sentence:
    """Return a limit with its unit and window, e.g. “1,000 tokens per day”."""
    names = {
        Window.MINUTE: _("minute"),
        Window.DAY: pgettext("budget", "day"),
        Window.MONTH: _("month"),
    }
    number = MEASURES[measure].number(amount)
    template = MEASURES[measure].limit(amount)
    return template.fill(count=number, amount=number, window=names[Window(window)])


def format_amount(measure: str, amount: int) -> str:
    """Return an amount with its unit in the reader's language."""
    return translate(amount_sentence(measure, amount))


def format_limit(measure: str, amount: int, window: str) -> str:
    """Return a limit with its unit and window in the reader's language."""
    return translate(limit_sentence(measure, amount, window))
