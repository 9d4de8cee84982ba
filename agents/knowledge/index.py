"""The interface of an index; each database has its own."""

from collections.abc import Sequence
from typing import Protocol

from agents.models import Chunk

Scores = dict[int, float]


class Index(Protocol):
    def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Index these passages, replacing what was under their keys."""

    def delete(self, chunk: int) -> None:
        """Remove this passage from the index."""

    def search(self, terms: Sequence[str], limit: int) -> tuple[Scores, Scores]:
        """Return the best passages with every term, and the best with some."""
