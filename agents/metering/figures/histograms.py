"""Histograms of durations: classes of equal relative width, which can be added up.

A class is 2^(1/8) wide, about 9 %. A percentile is the middle of its class, so it is at most
4.5 % away from the exact one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil, floor, log2

CLASSES_PER_DOUBLING = 8
Histogram = Counter[int]


def class_of(milliseconds: float) -> int:
    """Return the class of a duration; everything below a millisecond is one class."""
    return floor(log2(max(1.0, milliseconds)) * CLASSES_PER_DOUBLING)


def middle_of(number: int) -> float:
    """Return the milliseconds in the middle of a class."""
    return float(2 ** ((number + 0.5) / CLASSES_PER_DOUBLING))


def encode(histogram: Mapping[int, int]) -> str:
    """Return a histogram as stored: `75 80*3`."""
    return " ".join(
        f"{number}*{count}" if count > 1 else str(number)
        for number, count in sorted(histogram.items())
        if count
    )


def add_encoded(histogram: Histogram, text: str) -> None:
    for entry in text.split():
        if "*" in entry:
            number, count = entry.split("*")
            histogram[int(number)] += int(count)
        else:
            histogram[int(entry)] += 1


def add_joined(histogram: Histogram, text: str) -> None:
    """Add many stored histograms, joined by spaces: equal parts are counted first."""
    for entry, times in Counter(text.split()).items():
        number, _sign, count = entry.partition("*")
        histogram[int(number)] += int(count or 1) * times


def decode(text: str) -> Histogram:
    histogram: Histogram = Counter()
    add_encoded(histogram, text)
    return histogram


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """Return the milliseconds that this share of the durations stays within."""
    rank = _rank(sum(histogram.values()), share)
    count = 0
    for number in sorted(histogram):
        count += histogram[number]
        if count >= rank:
            return middle_of(number)
    return None


def exact_percentile(values: Iterable[float], share: float) -> float | None:
    """Return the same of values that are all known, such as those of a list on the page."""
    ordered = sorted(values)
    return ordered[_rank(len(ordered), share) - 1] if ordered else None


def _rank(count: int, share: float) -> int:
    return max(1, ceil(count * share))


def of(values: Iterable[float]) -> Histogram:
    return Counter(map(class_of, values))
