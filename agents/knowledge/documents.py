"""Ingests documents into rows and an index, and searches their passages."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.db import connection, transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils import timezone

from agents.db import database
from agents.engine import fault_injection
from agents.models import Chunk, Collection, Document
from agents.tools.search import Passage

from . import fts5, tsvector
from .chunking import Section, split_document
from .index import Index, Scores
from .readers import UnreadableDocument, read_file
from .tokenizer import detect_language, is_japanese, query_terms

INDEXES: dict[str, Index] = {"sqlite": fts5, "postgresql": tsvector}
DEFAULT_COLLECTION = "Documents"
LANGUAGE_BOOST = 1.5  # factor for passages in the question's language

Outcome = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What happened to a document."""

    document: Document
    outcome: Outcome


def ingest(path: Path) -> IngestResult:
    """Ingest a Markdown or text file, again if it changed."""
    path = path.resolve()
    inside = path.is_relative_to(settings.BASE_DIR)
    source = path.relative_to(settings.BASE_DIR) if inside else path
    return ingest_text(read_file(path), source=source.as_posix(), title=path.stem)


def ingest_text(text: str, *, source: str, title: str) -> IngestResult:
    """Ingest a text; `title` is used if it has no main heading."""
    digest = sha256(text.encode()).hexdigest()
    collection = default_collection()
    if known := collection.documents.filter(source=source, digest=digest).first():
        return IngestResult(document=known, outcome="unchanged")

    title, sections = split_document(text, title=title)
    if not sections:
        raise UnreadableDocument(f"{source!r} contains no text.")
    fields = {
        "title": title[:200],
        "digest": digest,
        "language": detect_language(text),
        "status": Document.Status.READY,
        "indexed_at": timezone.now(),
    }
    return _save_document(collection, source, fields, sections)


def default_collection() -> Collection:
    """Return the installation's first collection, which is open to everyone."""
    found, _ = Collection.objects.get_or_create(
        name=DEFAULT_COLLECTION, owner=None, topic="", defaults={"is_open": True}
    )
    return found


def search(query: str, top_k: int = 5) -> list[Passage]:
    """Return the most relevant passages, those with all terms first."""
    terms = query_terms(query)
    if not terms or top_k < 1:
        return []
    every, some = _index().search(terms, top_k * 4)
    language = "ja" if is_japanese(query) else "en"
    return [*_rank_passages(every, language), *_rank_passages(some, language)][:top_k]


async def asearch(query: str, top_k: int = 5) -> list[Passage]:
    return await database.run(search, query, top_k)


@transaction.atomic
def _save_document(
    collection: Collection, source: str, fields: dict[str, Any], sections: list[Section]
) -> IngestResult:
    document, is_new = collection.documents.update_or_create(source=source, defaults=fields)
    document.chunks.all().delete()
    chunks = Chunk.objects.bulk_create(
        Chunk(document=document, ordinal=at, heading=section.heading, text=section.text)
        for at, section in enumerate(sections, start=1)
    )
    fault_injection.point("before_document_index")
    _index().upsert(chunks)
    return IngestResult(document=document, outcome="added" if is_new else "updated")


@receiver(post_delete, sender=Chunk)
def _remove_from_index(instance: Chunk, **kwargs: Any) -> None:
    _index().delete(instance.pk)


def _index() -> Index:
    return INDEXES[connection.vendor]


def _rank_passages(scores: Scores, language: str) -> list[Passage]:
    chunks = Chunk.objects.select_related("document").in_bulk(scores)
    found = [
        Passage(
            document=chunk.document.title,
            source=chunk.document.name,
            heading=chunk.heading,
            chunk=chunk.ordinal,
            text=chunk.text,
            score=score * (LANGUAGE_BOOST if chunk.document.language == language else 1),
            lang=chunk.document.language,
        )
        for pk, score in scores.items()
        if (chunk := chunks.get(pk))
    ]
    return sorted(found, key=lambda passage: -passage.score)
