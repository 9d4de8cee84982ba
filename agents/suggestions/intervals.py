"""Intervals of differences, so that little evidence looks like little."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

Z = 1.96  # of 95 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A mean difference of pairs, with its interval; without one there were too few pairs."""

    pairs: int
    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes no difference."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def difference(changes: Sequence[float]) -> Difference | None:
    """Return the mean of paired differences."""
    if not changes:
        return None
    middle = mean(changes)
    if len(changes) < 3:
        return Difference(pairs=len(changes), mean=middle)
    spread = Z * stdev(changes) / sqrt(len(changes))
    return Difference(
        pairs=len(changes), mean=middle, low=middle - spread, high=middle + spread
    )
