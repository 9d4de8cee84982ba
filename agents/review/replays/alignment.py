"""Aligns two lists of steps, so that equal ones share a row."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Step = TypeVar("Step")
Pair = tuple[Step | None, Step | None]
Similarity = Callable[[Step, Step], float]

# The table has a cell per pair of steps, so long runs are aligned in chunks.
CHUNK_STEPS = 200


def align(
    first: Sequence[Step], second: Sequence[Step], likeness: Similarity[Step]
) -> list[Pair[Step]]:
    """Return every step once, in order. Pairs with a similarity of 0 are never made."""
    pairs: list[Pair[Step]] = []
    for start in range(0, max(len(first), len(second)), CHUNK_STEPS):
        end = start + CHUNK_STEPS
        chunk_pairs = _align_chunk(first[start:end], second[start:end], likeness)
        pairs += chunk_pairs
    return pairs


def _align_chunk(
    first: Sequence[Step], second: Sequence[Step], likeness: Similarity[Step]
) -> list[Pair[Step]]:
    # The best similarity of what follows each position, and the similarity of each pair.
    below = [(0.0, 0.0)] * (len(second) + 1)
    table = [below]
    for step in reversed(first):
        row = [(0.0, 0.0)]
        for index in range(len(second) - 1, -1, -1):
            similarity = likeness(step, second[index])
            best = max(
                below[index][0],
                row[-1][0],
                similarity + below[index + 1][0] if similarity else 0.0,
            )
            row.append((best, similarity))
        below = row[::-1]
        table.append(below)
    table.reverse()
    # The way through the table that reaches the best similarity.
    pairs: list[Pair[Step]] = []
    first_index = 0
    second_index = 0
    while first_index < len(first) and second_index < len(second):
        best, similarity = table[first_index][second_index]
        if similarity and best == similarity + table[first_index + 1][second_index + 1][0]:
            pairs.append((first[first_index], second[second_index]))
            first_index += 1
            second_index += 1
        elif best == table[first_index + 1][second_index][0]:
            pairs.append((first[first_index], None))
            first_index += 1
        else:
            pairs.append((None, second[second_index]))
            second_index += 1
    pairs += [(step, None) for step in first[first_index:]]
    return pairs + [(None, step) for step in second[second_index:]]
