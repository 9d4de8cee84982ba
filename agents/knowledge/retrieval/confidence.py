"""Whether the documents contain an answer at all."""

from collections.abc import Sequence

from agents.engine.material import Passage
from agents.tools.search import Confidence

from .query import Query

MEANING = 0.5
GAP = 0.5
MISSING_EXACT = 0.25
GOOD = 0.7
# How many documents the best one is compared with.
OTHERS = 5


def certainty(query: Query, ranked: Sequence[Passage]) -> float:
    """Return how certain it is that the best passage answers: about 0 to 1.5.

    A question about something else shares few rare words with any passage, and its best
    passages are all about equally far away. An identifier that occurs nowhere counts against
    it.
    """
    if not ranked:
        return 0.0
    best = max(passage.words + MEANING * passage.meaning for passage in ranked)
    if query.exact:
        best -= MISSING_EXACT * (1 - max(passage.exact for passage in ranked))
    best_by_document: dict[int | None, float] = {}
    for passage in ranked:
        best_by_document.setdefault(passage.document, passage.score)
    first, *next_ones = sorted(best_by_document.values(), reverse=True)[: OTHERS + 1]
    gap = first - sum(next_ones) / len(next_ones) if next_ones else 0.0
    return best + GAP * gap


def confidence(value: float, minimum: float) -> Confidence:
    """Return what a certainty means; below the minimum nothing was found."""
    if value < minimum:
        return "none"
    return "good" if value >= max(GOOD, minimum) else "weak"
