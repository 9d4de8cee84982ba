"""What figures are computed from, and what comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from .index import Place
from .parsing import Figure

MAX_LISTED_OPERANDS = 4  # in a formula


class Operand(NamedTuple):
    """A figure that another can be computed from."""

    value: float
    unit: str
    text: str
    place: Place | None = None


class Computation(NamedTuple):
    """How a figure follows from others: a formula, or a `kind` over the rows of a result."""

    formula: str
    kind: str = ""  # sum, average, count, …
    size: int = 0  # of rows
    name: str = ""  # of their column
    place: Place | None = None


@dataclass
class Context:
    """What a figure is said with: its sentence, and the figures around it."""

    sentence: str
    surroundings: str = ""  # the block with the sentence, and its headings
    near: Sequence[Operand] = ()  # in the sentence or row
    nearby: Sequence[Operand] = ()  # in the block and the one before it
    counts: frozenset[int] = frozenset()  # items of the answer's lists and rows of its tables

    @cached_property
    def folded_sentence(self) -> str:
        return self.sentence.casefold()

    @cached_property
    def folded_text(self) -> str:
        """The sentence and its surroundings."""
        return f"{self.surroundings}\n{self.sentence}".casefold()


def is_year(figure: Figure) -> bool:
    """Whether a bare number is probably a year, which nothing is computed from."""
    return (
        figure.is_trivial and isinstance(figure.value, Decimal) and 1900 <= figure.value <= 2100
    )


def distinct_operands(operands: Sequence[Operand], figure: Figure) -> list[Operand]:
    """Return operands of different values, without the figure itself and zeros."""
    value = abs(float(figure.value)) if isinstance(figure.value, Decimal) else 0.0
    by_value: dict[float, Operand] = {}
    for operand in operands:
        if operand.value and not (operand.value == value and operand.unit == figure.unit):
            by_value.setdefault(operand.value, operand)
    return list(by_value.values())


def format_number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def format_sum(texts: Sequence[str]) -> str:
    """Return a sum of a few operands; an empty text for more."""
    return " + ".join(texts) if len(texts) <= MAX_LISTED_OPERANDS else ""
