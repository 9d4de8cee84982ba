"""The interface of a full-text index; each database has its own."""

from collections.abc import Collection, Sequence
from typing import Protocol

from agents.models import Chunk

Scores = dict[int, float]


class Index(Protocol):
    def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Index these passages, replacing what was under their keys."""

    def delete(self, chunks: Sequence[int]) -> None:
        """Remove these passages from the index."""

    def search(
        self, terms: Sequence[str], limit: int, collections: Collection[int]
    ) -> tuple[Scores, Scores]:
        """Return the best passages with every term, and the best with some.

        Only passages of these collections are read.
        """
