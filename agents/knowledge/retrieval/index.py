"""The interface of a full-text index; each database has its own."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agents.models import Chunk

Scores = dict[int, float]
# Alternatives of a word: a passage with one of them has the word.
Groups = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordHits:
    """The best passages by BM25, and how many have each group of words."""

    scores: Scores = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)
    total: int = 0  # passages of all


# How many passages are ranked by their words. Common words of a long question would match most.
MAX_RANKED = 6_000


def rarest(counts: Sequence[int], total: int) -> list[int]:
    """Return the groups that are searched for: the rarest, and all in a small library.

    A passage that has only common words of the question isn't a good one. Those found are
    compared with all words afterwards.
    """
    groups: list[int] = []
    passages = 0
    occurring = [group for group, count in enumerate(counts) if count]
    for group in sorted(occurring, key=counts.__getitem__):
        passages += counts[group]
        if groups and passages > MAX_RANKED and total > MAX_RANKED:
            break
        groups.append(group)
    return sorted(groups)


class Index(Protocol):
    def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Index these passages, replacing what was under their keys."""

    def delete(self, chunks: Sequence[int]) -> None:
        """Remove these passages from the index."""

    def search(self, groups: Groups, limit: int, collections: Collection[int]) -> WordHits:
        """Return the best passages of these collections, those with every group first."""
