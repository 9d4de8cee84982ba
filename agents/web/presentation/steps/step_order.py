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
    numbers = {step.number for step in steps}
    children: dict[int | None, list[AStep]] = defaultdict(list)
    for step in steps:
        children[step.parent if step.parent in numbers else None].append(step)
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
        self.numbers = []
        self.parents = {}
        for step in steps:
            self.numbers.append(step.number)
            self.parents[step.number] = step.parent

    def add(self, step: OrderedStep) -> int | None:
        """Insert a row; return the one it follows: 0 at the start, None at the end.

        It comes after earlier siblings and everything below them.
        """
        parent = step.parent if step.parent in self.parents else None
        position = len(self.numbers)
        while position:
            previous = self.numbers[position - 1]
            if previous == parent or self._sibling_ancestor(previous, parent) < step.number:
                break
            position -= 1
        self.numbers.insert(position, step.number)
        self.parents[step.number] = step.parent
        if position == len(self.numbers) - 1:
            return None
        return self.numbers[position - 1] if position else 0

    def _sibling_ancestor(self, number: int, parent: int | None) -> float:
        """Return the row or its ancestor with this parent; infinite if there is none."""
        while True:
            own_parent = self.parents[number]
            if own_parent not in self.parents:
                own_parent = None
            if own_parent == parent:
                return number
            if own_parent is None:
                return inf
            number = own_parent
