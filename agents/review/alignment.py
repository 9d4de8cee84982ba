"""Aligns two lists of steps, so that equal ones share a row."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Step = TypeVar("Step")
Pair = tuple[Step | None, Step | None]
Similarity = Callable[[Step, Step], float]

# The table has a cell per pair of steps, so long runs are aligned in chunks.
CHUNK_STEPS = 200


def align(
    left: Sequence[Step], right: Sequence[Step], likeness: Similarity[Step]
) -> list[Pair[Step]]:
    """Return every step once, in order. Pairs with a similarity of 0 are never made."""
    pairs: list[Pair[Step]] = []
    for at in range(0, max(len(left), len(right)), CHUNK_STEPS):
        ours, theirs = left[at : at + CHUNK_STEPS], right[at : at + CHUNK_STEPS]
        pairs += _trace_back(ours, theirs, _score_table(ours, theirs, likeness))
    return pairs


def _score_table(
    left: Sequence[Step], right: Sequence[Step], likeness: Similarity[Step]
) -> list[list[tuple[float, float]]]:
    """Return the best similarity of the rest from each position, and of each pair."""
    below = [(0.0, 0.0)] * (len(right) + 1)
    table = [below]
    for ours in reversed(left):
        row = [(0.0, 0.0)]
        for at in range(len(right) - 1, -1, -1):
            alike = likeness(ours, right[at])
            best = max(below[at][0], row[-1][0], alike + below[at + 1][0] if alike else 0.0)
            row.append((best, alike))
        below = row[::-1]
        table.append(below)
    return table[::-1]


def _trace_back(
    left: Sequence[Step], right: Sequence[Step], table: list[list[tuple[float, float]]]
) -> list[Pair[Step]]:
    pairs: list[Pair[Step]] = []
    a = b = 0
    while a < len(left) and b < len(right):
        best, alike = table[a][b]
        if alike and best == alike + table[a + 1][b + 1][0]:
            pairs.append((left[a], right[b]))
            a, b = a + 1, b + 1
        elif best == table[a + 1][b][0]:
            pairs.append((left[a], None))
            a += 1
        else:
            pairs.append((None, right[b]))
            b += 1
    pairs += [(step, None) for step in left[a:]]
    return pairs + [(None, step) for step in right[b:]]
