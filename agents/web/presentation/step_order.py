"""The order of rows: each is followed by its parts.

Steps are numbered as they start. Parallel work is interleaved, but readers want to see together
what belongs together.
"""

from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from math import inf
from typing import Protocol, TypeVar


class OrderedStep(Protocol):
    number: int
    parent: int | None


AStep = TypeVar("AStep", bound=OrderedStep)


def sort_steps(steps: Iterable[AStep]) -> list[AStep]:
    steps = list(steps)
    known = {step.number for step in steps}
    children: dict[int | None, list[AStep]] = defaultdict(list)
    for step in steps:
        children[step.parent if step.parent in known else None].append(step)
    ordered = []
    stack = children[None][::-1]
    while stack:
        ordered.append(step := stack.pop())
        stack += children[step.number][::-1]
    return ordered


@dataclass(slots=True)
class Outline:
    """The rows on one page, in order."""

    numbers: list[int] = field(default_factory=list)
    parents: dict[int, int | None] = field(default_factory=dict)

    def __contains__(self, number: object) -> bool:
        return number in self.parents

    @property
    def visible_numbers(self) -> Set[int]:
        return self.parents.keys()

    def take(self, steps: Iterable[OrderedStep]) -> None:
        """Replace the rows."""
        self.numbers, self.parents = [], {}
        for step in steps:
            self.numbers.append(step.number)
            self.parents[step.number] = step.parent

    def add(self, step: OrderedStep) -> int | None:
        """Insert a row; return the one it follows: 0 at the start, None at the end."""
        position = self._insert_position(step)
        self.numbers.insert(position, step.number)
        self.parents[step.number] = step.parent
        if position == len(self.numbers) - 1:
            return None
        return self.numbers[position - 1] if position else 0

    def _insert_position(self, step: OrderedStep) -> int:
        """Return the position after earlier siblings and everything below them."""
        parent = step.parent if step.parent in self.parents else None
        for position in range(len(self.numbers), 0, -1):
            other = self.numbers[position - 1]
            if other == parent:
                return position
            if self._sibling_ancestor(other, parent) < step.number:
                return position
        return 0

    def _sibling_ancestor(self, number: int, parent: int | None) -> float:
        """Return the row or its ancestor with this parent; infinite if there is none."""
        while (above := self._parent(number)) != parent:
            if above is None:
                return inf
            number = above
        return number

    def _parent(self, number: int) -> int | None:
        parent = self.parents[number]
        return parent if parent in self.parents else None
