"""What an index does; each database has one of its own."""

from collections.abc import Sequence
from typing import Protocol

from agents.models import Chunk

Scores = dict[int, float]


class Index(Protocol):
    def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Have these passages found, whatever was known under their keys before."""

    def delete(self, chunk: int) -> None:
        """Have this passage found no more."""

    def search(self, terms: Sequence[str], limit: int) -> tuple[Scores, Scores]:
        """The best passages with every term, and the best with some."""
