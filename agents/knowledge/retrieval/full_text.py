"""Full-text search by the database's own index."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models.signals import post_delete
from django.dispatch import receiver

from agents.models import Chunk

from ..scope import Scope
from . import fts5, tsvector
from .index import Index, Scores

INDEXES: dict[str, Index] = {"sqlite": fts5, "postgresql": tsvector}


def upsert(chunks: Sequence[Chunk]) -> None:
    """Index these passages."""
    _index().upsert(chunks)


def delete(chunks: Sequence[int]) -> None:
    """Remove these passages."""
    _index().delete(chunks)


def search(terms: Sequence[str], limit: int, scope: Scope) -> tuple[Scores, Scores]:
    """Return the best passages in scope: those with every term, and those with some."""
    if not terms or not scope or limit < 1:
        return {}, {}
    return _index().search(terms, limit, scope.collections)


def _index() -> Index:
    return INDEXES[connection.vendor]


@receiver(post_delete, sender=Chunk)
def _remove_from_index(instance: Chunk, **kwargs: Any) -> None:
    delete([instance.pk])
