"""Intervals for rates and means, at 95 % confidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

Z = 1.96
MIN_CLUSTERS = 5  # an interval of fewer says nothing


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float

    @property
    def has_zero(self) -> bool:
        return self.low <= 0 <= self.high


def wilson(successes: int, total: int) -> Interval | None:
    """Return the interval of a share, as Wilson computes it: it never leaves 0 to 1."""
    if not total:
        return None
    share = successes / total
    square = Z * Z
    middle = (share + square / (2 * total)) / (1 + square / total)
    spread = share * (1 - share) / total + square / (4 * total * total)
    half = Z * sqrt(spread) / (1 + square / total)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def clustered_mean(clusters: Sequence[tuple[float, int]]) -> tuple[float, float] | None:
    """Return a mean and its standard error, of the sum and the count of each cluster.

    Values within a cluster, such as the runs of one chat, resemble each other. As single values
    they would make the interval too narrow.
    """
    count = sum(number for _total, number in clusters)
    if not count:
        return None
    mean = sum(total for total, _number in clusters) / count
    if len(clusters) < MIN_CLUSTERS:
        return mean, float("inf")
    residuals = sum((total - number * mean) ** 2 for total, number in clusters)
    correction = len(clusters) / (len(clusters) - 1)
    return mean, sqrt(residuals * correction) / count


def around(mean: float, error: float) -> Interval | None:
    """Return the normal interval; None if there is too little data for one."""
    return None if error == float("inf") else Interval(mean - Z * error, mean + Z * error)


def paired_mean(differences: Sequence[float]) -> tuple[float, Interval | None]:
    """Return the mean of paired differences with its interval."""
    clusters = [(value, 1) for value in differences]
    estimate = clustered_mean(clusters)
    if estimate is None:
        return 0.0, None
    return fmean(differences), around(*estimate)
