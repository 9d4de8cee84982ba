"""Adds, replaces, retries, cancels and deletes documents; the queue reads them."""

from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.db import transaction

from agents.db import claims
from agents.db.sanitize import visible_name
from agents.knowledge.files import release
from agents.knowledge.parsing.parsers.sniffing import BY_ENDING
from agents.models import Chunk, Collection, Document, DocumentSource, StoredFile
from agents.models.types import AnyUser
from agents.tools.egress import validate_url

from . import progress, queue
from .leases import PENDING
from .look_alikes import distinct_title

Status = Document.Status

MAX_SOURCE_CHARS = 500
MAX_URL_CHARS = 2_000
MAX_FOLDER_FILES = 10_000
PASSAGE_BATCH = 250  # each takes up to 0.6 ms, because the index is searched for its words
SUFFIXES = frozenset(BY_ENDING)
# Scanned PDFs are recognized when they are read; these are known before.
SLOW_TYPES = ("audio/", "video/", "image/")
FRESH: dict[str, Any] = {
    "status": Status.QUEUED,
    "problem": "",
    "done": 0,
    "total": 0,
    "attempts": 0,
    **claims.NO_LEASE,
}


def add_file(
    collection: Collection,
    owner: AnyUser | None,
    name: str,
    stored_file: StoredFile,
    *,
    is_private: bool = False,
) -> Document:
    """Add a file, or replace the one with the same name; unchanged files aren't read again.

    Call it in the transaction that saved the file. The name can have folders. A private file is
    read without models of other servers.
    """
    source = clean_name(name)
    fields: dict[str, Any] = {
        "file": stored_file,
        "size": stored_file.size,
        "mime_type": stored_file.mime_type,
        "is_slow": stored_file.mime_type.startswith(SLOW_TYPES),
        "owner": _saved_user(owner),
        "is_private": is_private,
    }
    with transaction.atomic():
        document, is_new = Document.objects.select_for_update().get_or_create(
            collection=collection,
            source=source,
            defaults={**fields, "title": Path(source).stem[:200] or source[:200]},
        )
        if not is_new and document.file_id == stored_file.pk and _is_settled(document):
            return document
        replaced = document.file_id if not is_new else None
        if document.origin_id is not None:
            # It is no longer what its source has, so that one looks at all its files again.
            fields |= {"origin": None, "origin_key": "", "origin_version": ""}
            origins = DocumentSource.objects.filter(pk=document.origin_id)
            origins.update(place_version="")
        if is_new:
            fields["title"] = distinct_title(document, document.title)
        _update(document, {**fields, **FRESH})
        if replaced != stored_file.pk:
            transaction.on_commit(lambda: release([replaced]))
        _announce_queued(document)
    return document


def find_files(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders that can be read, without hidden ones."""
    readable = (
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file() and not path.is_symlink()
    )
    visible = (
        path
        for path in readable
        if not any(name.startswith(".") for name in path.relative_to(folder).parts)
    )
    return sorted(visible)[:MAX_FOLDER_FILES]


def add_url(collection: Collection, owner: AnyUser | None, url: str) -> Document:
    """Add a web page or a file on the web; raise EgressRefused if the address isn't allowed."""
    url = str(validate_url(url.strip()).copy_with(fragment=None))
    source = url
    if len(url) > MAX_SOURCE_CHARS:
        digest = sha256(url.encode()).hexdigest()[:16]
        source = f"{url[: MAX_SOURCE_CHARS - 17]}…{digest}"
    fields = {"url": url[:MAX_URL_CHARS], "owner": _saved_user(owner)}
    with transaction.atomic():
        document, is_new = Document.objects.select_for_update().get_or_create(
            collection=collection, source=source, defaults={**fields, "title": url[:200]}
        )
        if is_new or _is_settled(document):
            _update(document, {**fields, **FRESH})
            _announce_queued(document)
    return document


def refresh(document: Document) -> bool:
    """Fetch a page again and read it if it changed; its passages stay until then."""
    return bool(document.url) and retry(document)


def retry(document: Document) -> bool:
    """Read a failed or canceled document again."""
    idle = Document.objects.filter(pk=document.pk).exclude(status__in=PENDING)
    if not idle.update(**FRESH):
        return False
    document.refresh_from_db()
    _announce_queued(document)
    return True


def cancel(document: Document) -> bool:
    """Stop reading a document; passages from before stay."""
    live = Document.objects.filter(pk=document.pk, status__in=PENDING)
    # A document with passages stays usable, so canceling only ends the update.
    was_ready = live.exclude(indexed_at=None).update(
        status=Status.READY, done=0, total=0, **claims.NO_LEASE
    )
    stopped = was_ready or live.update(
        status=Status.CANCELLED, done=0, total=0, **claims.NO_LEASE
    )
    if stopped:
        document.refresh_from_db()
        progress.announce(document)
    return bool(stopped)


def delete(document: Document) -> None:
    """Delete a document and what was derived from it; its file if nothing else uses it."""
    delete_all(Document.objects.filter(pk=document.pk))


def delete_all(documents: Iterable[Document]) -> int:
    """Delete these documents one by one, so that other writers get their turn.

    The passages of a long one are deleted in batches before. If that is interrupted, the
    document is canceled: it can be read again, or deleted.
    """
    count = 0
    for document in documents:
        file = document.file_id
        chunks = Chunk.objects.filter(document=document).order_by("pk")
        chunk_ids = chunks.values_list("pk", flat=True)
        if chunk_ids[PASSAGE_BATCH:].exists():
            Document.objects.filter(pk=document.pk).update(
                status=Status.CANCELLED, indexed_at=None, **claims.NO_LEASE
            )
            while batch := list(chunk_ids[:PASSAGE_BATCH]):
                Chunk.objects.filter(pk__in=batch).delete()
        with transaction.atomic():
            count += document.delete()[0] > 0
        release([file])
        progress.announce(document, is_deleted=True)
    return count


def clean_name(name: str) -> str:
    """Return a file's name with its folders, without anything that leads elsewhere."""
    names = map(visible_name, name.replace("\\", "/").split("/"))
    path = "/".join(name for name in names if name not in {"", ".", ".."})
    if len(path) <= MAX_SOURCE_CHARS:
        return path or "file"
    digest = sha256(path.encode()).hexdigest()[:8]
    return f"{digest}…{path[-(MAX_SOURCE_CHARS - 9) :]}"


def _saved_user(user: AnyUser | None) -> AnyUser | None:
    return user if user is not None and user.pk else None


def _is_settled(document: Document) -> bool:
    """Whether nothing has to be done: it was read, or is in the queue for the first time."""
    return document.status == Status.READY or (
        document.status == Status.QUEUED and document.lease_until is None
    )


def _update(document: Document, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(document, name, value)
    document.save(update_fields=list(values))


def _announce_queued(document: Document) -> None:
    transaction.on_commit(lambda: progress.announce(document))
    transaction.on_commit(partial(queue.wake, document))
