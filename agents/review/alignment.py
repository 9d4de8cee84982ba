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
    for start in range(0, max(len(left), len(right)), CHUNK_STEPS):
        left_chunk = left[start : start + CHUNK_STEPS]
        right_chunk = right[start : start + CHUNK_STEPS]
        pairs += _trace_back(
            left_chunk, right_chunk, _score_table(left_chunk, right_chunk, likeness)
        )
    return pairs


def _score_table(
    left: Sequence[Step], right: Sequence[Step], likeness: Similarity[Step]
) -> list[list[tuple[float, float]]]:
    """Return the best similarity of the rest from each position, and of each pair."""
    below = [(0.0, 0.0)] * (len(right) + 1)
    table = [below]
    for step in reversed(left):
        row = [(0.0, 0.0)]
        for index in range(len(right) - 1, -1, -1):
            similarity = likeness(step, right[index])
            best = max(
                below[index][0],
                row[-1][0],
                similarity + below[index + 1][0] if similarity else 0.0,
            )
            row.append((best, similarity))
        below = row[::-1]
        table.append(below)
    return table[::-1]


def _trace_back(
    left: Sequence[Step], right: Sequence[Step], table: list[list[tuple[float, float]]]
) -> list[Pair[Step]]:
    pairs: list[Pair[Step]] = []
    left_index = right_index = 0
    while left_index < len(left) and right_index < len(right):
        best, similarity = table[left_index][right_index]
        if similarity and best == similarity + table[left_index + 1][right_index + 1][0]:
            pairs.append((left[left_index], right[right_index]))
            left_index = left_index + 1
            right_index = right_index + 1
        elif best == table[left_index + 1][right_index][0]:
            pairs.append((left[left_index], None))
            left_index += 1
        else:
            pairs.append((None, right[right_index]))
            right_index += 1
    pairs += [(step, None) for step in left[left_index:]]
    return pairs + [(None, step) for step in right[right_index:]]
