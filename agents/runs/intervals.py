"""Time intervals in seconds: union, difference and total length."""

from collections.abc import Iterable

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def subtract(intervals: list[Interval], excluded: list[Interval]) -> list[Interval]:
    """Return what is left of intervals after removing others."""
    remaining = intervals
    for start, end in excluded:
        remaining = [
            (first, last)
            for interval_start, interval_end in remaining
            for first, last in (
                (interval_start, min(interval_end, start)),
                (max(interval_start, end), interval_end),
            )
            if first < last
        ]
    return remaining


def clip(intervals: Iterable[Interval], start: float, end: float) -> list[Interval]:
    cut = ((max(first, start), min(last, end)) for first, last in intervals)
    return [(first, last) for first, last in cut if first < last]


def total_length(intervals: Iterable[Interval]) -> float:
    return sum(end - start for start, end in intervals)
