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
    below: dict[int | None, list[AStep]] = defaultdict(list)
    for step in steps:
        below[step.parent if step.parent in known else None].append(step)
    found, waiting = [], below[None][::-1]
    while waiting:
        found.append(step := waiting.pop())
        waiting += below[step.number][::-1]
    return found


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
        at = self._insert_position(step)
        self.numbers.insert(at, step.number)
        self.parents[step.number] = step.parent
        if at == len(self.numbers) - 1:
            return None
        return self.numbers[at - 1] if at else 0

    def _insert_position(self, step: OrderedStep) -> int:
        """Return the position after earlier siblings and everything below them."""
        parent = step.parent if step.parent in self.parents else None
        for at in range(len(self.numbers), 0, -1):
            other = self.numbers[at - 1]
            if other == parent:
                return at
            if self._sibling_ancestor(other, parent) < step.number:
                return at
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
