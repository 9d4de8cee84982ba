"""Documents become rows and an index, and passages are found again.

On SQLite a full-text index answers. It cannot tell Japanese words apart, so it is given what
it can: Latin words as they are, and Japanese as overlapping pairs of characters.
"""

from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from operator import add as plus
from pathlib import Path
from typing import Any, Literal

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Case, Q, When
from django.db.models.signals import post_delete
from django.dispatch import receiver

from agents.models import Chunk, Document
from agents.tools.search import Passage

from .reading import Unreadable, read
from .sections import Section, split
from .words import RUN, index_terms, language_of, pairs, plain, terms_of

OWN_LANGUAGE = 1.5  # how much more a passage in the language of the question is worth

Outcome = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What became of a document that was handed in."""

    document: Document
    outcome: Outcome


def ingest(path: Path) -> Ingested:
    """Take in a Markdown or text file, again where it changed."""
    path = path.resolve()
    inside = path.is_relative_to(settings.BASE_DIR)
    source = path.relative_to(settings.BASE_DIR) if inside else path
    return add(read(path), source=source.as_posix(), title=path.stem)


def add(text: str, *, source: str, title: str) -> Ingested:
    """Take in a text; `title` is for one that has no main heading."""
    digest = sha256(text.encode()).hexdigest()
    if known := Document.objects.filter(source=source, digest=digest).first():
        return Ingested(document=known, outcome="unchanged")

    title, sections = split(text, title=title)
    if not sections:
        raise Unreadable(f"There is no text in {source!r}.")
    fields = {"title": title[:200], "digest": digest, "language": language_of(text)}
    return _keep(source, fields, sections)


def search(query: str, top_k: int = 5) -> list[Passage]:
    """The passages that say most about the query, best first."""
    terms = terms_of(query)
    if not terms or top_k < 1:
        return []
    look_up = _look_up_index if has_index() else _look_up_rows
    found = look_up(terms, "ja" if RUN.search(plain(query)) else "en", top_k * 4)
    return found[:top_k]


asearch = database_sync_to_async(search)


def has_index() -> bool:
    return connection.vendor == "sqlite"


@transaction.atomic
def _keep(source: str, fields: dict[str, str], sections: list[Section]) -> Ingested:
    document, is_new = Document.objects.update_or_create(source=source, defaults=fields)
    document.chunks.all().delete()
    chunks = Chunk.objects.bulk_create(
        Chunk(document=document, ordinal=at, heading=section.heading, text=section.text)
        for at, section in enumerate(sections, start=1)
    )
    if has_index():
        _index(document, chunks)
    return Ingested(document=document, outcome="added" if is_new else "updated")


def _index(document: Document, chunks: list[Chunk]) -> None:
    title = index_terms(document.title)
    rows = [(c.pk, title, index_terms(c.heading), index_terms(c.text)) for c in chunks]
    with connection.cursor() as cursor:
        # REPLACE, because `manage.py flush` gives ids out again and leaves the index alone.
        cursor.executemany(
            "INSERT OR REPLACE INTO agents_chunk_index (rowid, title, heading, terms)"
            " VALUES (%s, %s, %s, %s)",
            rows,
        )


@receiver(post_delete, sender=Chunk)
def _forget(instance: Chunk, **kwargs: Any) -> None:
    if has_index():
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM agents_chunk_index WHERE rowid = %s", [instance.pk])


def _look_up_index(terms: list[str], language: str, limit: int) -> list[Passage]:
    """Passages with every term come before those with some."""
    phrases = [_phrase(term) for term in terms]
    every = _matches(" AND ".join(phrases), limit)
    some = _matches(" OR ".join(phrases), limit)
    chunks = Chunk.objects.select_related("document").in_bulk([*every, *some]).values()
    best = {chunk: every[chunk.pk] for chunk in chunks if chunk.pk in every}
    rest = {chunk: some[chunk.pk] for chunk in chunks if chunk.pk not in every}
    return [*_ranked(best, language), *_ranked(rest, language)]


def _phrase(term: str) -> str:
    """In quotes no term is an operator; a character alone is found where it begins a pair."""
    if RUN.match(term):
        return f'"{pairs(term)}"' if len(term) > 1 else f'"{term}" *'
    return f'"{term}"'


def _matches(expression: str, limit: int) -> dict[int, float]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT agents_chunk.id, -rank FROM agents_chunk_index"
            " JOIN agents_chunk ON agents_chunk.id = agents_chunk_index.rowid"
            " WHERE agents_chunk_index MATCH %s AND rank MATCH 'bm25(2.0, 8.0, 1.0)'"
            " ORDER BY rank LIMIT %s",
            [expression, limit],
        )
        return dict(cursor.fetchall())


def _look_up_rows(terms: list[str], language: str, limit: int) -> list[Passage]:
    """For databases without the index: the more terms a passage has, the better."""
    counts = (Case(When(_mentions(term), then=1), default=0) for term in terms)
    chunks = Chunk.objects.select_related("document").annotate(hits=reduce(plus, counts))
    best = chunks.filter(hits__gt=0).order_by("-hits", "pk")[:limit]
    return _ranked({chunk: float(chunk.hits) for chunk in best}, language)


def _mentions(term: str) -> Q:
    return (
        Q(text__icontains=term)
        | Q(heading__icontains=term)
        | Q(document__title__icontains=term)
    )


def _ranked(scores: dict[Chunk, float], language: str) -> list[Passage]:
    found = [
        Passage(
            document=chunk.document.title,
            source=chunk.document.source,
            heading=chunk.heading,
            chunk=chunk.ordinal,
            text=chunk.text,
            score=score * (OWN_LANGUAGE if chunk.document.language == language else 1),
            lang=chunk.document.language,
        )
        for chunk, score in scores.items()
    ]
    return sorted(found, key=lambda passage: -passage.score)
