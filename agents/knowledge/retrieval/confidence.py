"""Whether the documents contain an answer at all."""

from math import exp

from agents.tools.search import Confidence

from .ranking import Ranking

# From a logistic regression over the questions of two sets, with and without an answer. How
# it was fitted, and what it is worth on a third set: docs/decisions/retrieval.md.
WORDS = 4.0
ABSENT = 2.4
GAP = 17.5
CONSTANT = -1.3
# How many documents the nearest one is compared with.
OTHERS = 5
GOOD = 0.4


def certainty(ranking: Ranking) -> float:
    """Return how likely it is that one of the passages answers, from 0 to 1.

    A question about something else has rare words that no passage has, shares few with the
    best one, and several documents are about equally far from its meaning.
    """
    if not ranking.passages:
        return 0.0
    nearest: dict[int | None, float] = {}
    for passage in ranking.passages:
        meaning = max(passage.meaning, nearest.get(passage.document, -1.0))
        nearest[passage.document] = meaning
    first, *next_ones = sorted(nearest.values(), reverse=True)[: OTHERS + 1]
    gap = first - sum(next_ones) / len(next_ones) if next_ones else 0.0
    evidence = WORDS * ranking.passages[0].words - ABSENT * ranking.absent + GAP * gap
    return 1 / (1 + exp(-evidence - CONSTANT))


def confidence(value: float, minimum: float) -> Confidence:
    """Return what a certainty means; below the minimum nothing was found."""
    if value < minimum:
        return "none"
    return "good" if value >= max(GOOD, minimum) else "weak"
