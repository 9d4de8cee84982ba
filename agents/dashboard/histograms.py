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
    for part in text.split():
        if "*" in part:
            number, count = part.split("*")
            histogram[int(number)] += int(count)
        else:
            histogram[int(part)] += 1


def add_joined(histogram: Histogram, text: str) -> None:
    """Add many stored histograms, joined by spaces: equal parts are counted first."""
    for part, times in Counter(text.split()).items():
        number, _sign, count = part.partition("*")
        histogram[int(number)] += int(count or 1) * times


def decode(text: str) -> Histogram:
    found: Histogram = Counter()
    add_encoded(found, text)
    return found


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """Return the milliseconds that this share of the durations stays within."""
    rank = max(1, ceil(sum(histogram.values()) * share))
    count = 0
    for number in sorted(histogram):
        count += histogram[number]
        if count >= rank:
            return middle_of(number)
    return None


def of(values: Iterable[float]) -> Histogram:
    return Counter(map(class_of, values))
