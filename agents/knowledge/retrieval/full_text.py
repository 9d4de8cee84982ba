"""Full-text search by the database's own index."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models.signals import post_delete
from django.dispatch import receiver

from agents.models import Chunk

from ..scope import Scope
from . import fts5, tsvector
from .index import Groups, Index, WordHits

TABLE = "agents_chunk_index"
INDEXES: dict[str, Index] = {"sqlite": fts5, "postgresql": tsvector}


def upsert(chunks: Sequence[Chunk]) -> None:
    """Index these passages."""
    _index().upsert(chunks)


def delete(chunks: Sequence[int]) -> None:
    """Remove these passages."""
    _index().delete(chunks)


def search(groups: Groups, limit: int, scope: Scope) -> WordHits:
    """Return the best passages in scope by their words."""
    if not groups or not scope or limit < 1:
        return WordHits()
    return _index().search(groups, limit, scope.collections)


def drop_deleted_words() -> bool:
    """Remove what the index still has of deleted passages; return False if some may be left.

    On PostgreSQL, vacuuming TABLE does that.
    """
    return connection.vendor != "sqlite" or fts5.drop_deleted_words()


def _index() -> Index:
    return INDEXES[connection.vendor]


@receiver(post_delete, sender=Chunk)
def _remove_from_index(instance: Chunk, **kwargs: Any) -> None:
    delete([instance.pk])
