"""Saves documents as parts and passages with an index, and searches them."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agents.engine import fault_injection
from agents.engine.material import Passage
from agents.models import Chunk, Collection, Document, DocumentPart, EmbeddingIndex

from . import scope as scopes
from .chunking import find_title, split_parts
from .embeddings import EmbeddingUnavailable
from .parsing import ParsedPart
from .readers import UnreadableDocument, read_file
from .retrieval import find, full_text, vector_index
from .retrieval.tokenizer import detect_language
from .retrieval.vector_index import Progress
from .scope import Scope

logger = logging.getLogger(__name__)

DEFAULT_COLLECTION = "Documents"

INDEXED_FIELDS = (
    "title",
    "digest",
    "language",
    "pages",
    "problem",
    "status",
    "indexed_at",
)

Outcome = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What happened to a document."""

    document: Document
    outcome: Outcome


def index_document(
    document: Document,
    parts: Sequence[ParsedPart],
    *,
    progress: Progress | None = None,
    before_saving: Callable[[], None] | None = None,
    embeds: bool = True,
) -> int:
    """Replace a document's parts, passages, words and vectors; return how many passages it has.

    Until this is done, searches find the previous ones. The document is saved as ready.
    `progress` is called with the passages embedded so far and their number. `before_saving` is
    called first in the transaction that replaces them, and can end it by raising. Without
    vectors, because the model is out of reach or `embeds` is off, full text finds it, and
    `vector_index.keep_up` adds them later.
    """
    parts = [replace(page, text=clean_text(page.text)) for page in parts]
    chunks = split_parts(parts, title=document.title)
    if not chunks:
        raise UnreadableDocument(f"{document.name!r} contains no text.")
    index = vector_index.writable() if embeds else None
    blobs: vector_index.Blobs = []
    if index:
        texts = [(document.title, chunk.heading, chunk.text) for chunk in chunks]
        try:
            blobs = vector_index.embed_texts(index, texts, progress)
        except EmbeddingUnavailable as error:
            logger.warning("Can't embed %s: %s", document.name, error)
    with transaction.atomic():
        if before_saving is not None:
            before_saving()
        _replace(document, parts, chunks, index if blobs else None, blobs)
    return len(chunks)


def ingest(
    path: Path, collection: Collection | None = None, *, embeds: bool = True
) -> IngestResult:
    """Ingest a Markdown or text file, again if it changed."""
    path = path.resolve()
    is_product = path.is_relative_to(settings.BASE_DIR)
    source = path.relative_to(settings.BASE_DIR) if is_product else path
    text = read_file(path)
    return ingest_text(
        text, source=source.as_posix(), title=path.stem, collection=collection, embeds=embeds
    )


def ingest_text(
    text: str,
    *,
    source: str,
    title: str,
    collection: Collection | None = None,
    embeds: bool = True,
) -> IngestResult:
    """Ingest a text; `title` is used if it has no main heading."""
    digest = sha256(text.encode()).hexdigest()
    collection = collection or default_collection()
    saved = collection.documents.filter(source=source).first()
    if saved and saved.digest == digest:
        return IngestResult(document=saved, outcome="unchanged")
    document = saved or Document(collection=collection, source=source)
    document.title = (find_title(text) or title)[:200]
    document.digest = digest
    document.language = detect_language(text)
    index_document(document, [ParsedPart(text=text)], embeds=embeds)
    return IngestResult(document=document, outcome="updated" if saved else "added")


def default_collection() -> Collection:
    """Return the installation's first collection, which is open to everyone."""
    collection, _ = Collection.objects.get_or_create(
        name=DEFAULT_COLLECTION,
        owner=None,
        topic="",
        deleted_at=None,
        defaults={"is_open": True},
    )
    return collection


def search(
    query: str,
    top_k: int = 5,
    *,
    scope: Scope | None = None,
    queries: Sequence[str] = (),
) -> Sequence[Passage]:
    """Return the most relevant passages in scope, by default in open collections."""
    scope = scopes.open_to_everyone() if scope is None else scope
    return find(query, top_k, scope=scope, queries=queries).passages


def _replace(
    document: Document,
    parts: Sequence[ParsedPart],
    chunks: Sequence[Chunk],
    index: EmbeddingIndex | None,
    blobs: vector_index.Blobs,
) -> None:
    """Save a document with its parts and passages, in the transaction of the caller."""
    document.status = Document.Status.READY
    document.indexed_at = timezone.now()
    # One that was deleted meanwhile stays deleted, and one that was moved stays there.
    is_known = document.pk is not None
    document.save(force_update=is_known, update_fields=INDEXED_FIELDS if is_known else None)
    document.parts.all().delete()
    document.chunks.all().delete()
    DocumentPart.objects.bulk_create(
        DocumentPart(
            document=document,
            number=page.number,
            kind=page.kind,
            label=page.label[:200],
            text=page.text,
            is_recognized=page.is_recognized,
            certainty=page.certainty,
        )
        for page in parts
    )
    for ordinal, chunk in enumerate(chunks, start=1):
        chunk.document = document
        chunk.ordinal = ordinal
    Chunk.objects.bulk_create(chunks)
    fault_injection.point("before_document_index")
    full_text.upsert(chunks)
    if index and EmbeddingIndex.objects.filter(pk=index.pk).exists():
        vector_index.save(index, [chunk.pk for chunk in chunks], blobs)


def clean_text(text: str) -> str:
    """Return text with plain line ends; PostgreSQL can't save a NUL."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
