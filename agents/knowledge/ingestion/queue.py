"""Reads queued documents in the background, one at a time in each process.

A process claims a document by a lease and renews it while it reads. If it dies, another one
takes over when the lease has ended. A canceled or deleted document is noticed at the next
renewal, and the parser is killed.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.db import DatabaseError, connections
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents.db import database
from agents.engine.errors import ToolError
from agents.files import FileRefused
from agents.knowledge.documents import index_document
from agents.knowledge.parsing import ParsedDocument, UnreadableDocument, parse
from agents.knowledge.retrieval.tokenizer import detect_language
from agents.models import Document, Run, StoredFile

from . import progress, readers, web_pages
from .progress import register_publisher

__all__ = ["process", "process_waiting", "register_publisher", "shut_down", "work_if_due"]

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
HEARTBEAT_SECONDS = 10.0
MAX_ATTEMPTS = 3
DEADLINE_SECONDS = 1_800.0  # recognizing a scanned page takes some seconds
RETRY_AFTER = timedelta(seconds=30)
# With workers, a web process only reads what none of them has taken, such as a file on a disk
# that they can't reach.
WORKERS_FIRST = timedelta(seconds=30)
CHECK_SECONDS = 4.0
SHUTDOWN_SECONDS = 5.0
CRASHED = "Reading this file failed several times. Check the server's log."
FILE_GONE = "The uploaded file is missing on the server. Upload it again."

Status = Document.Status
PENDING = (Status.QUEUED, Status.READING, Status.INDEXING)

is_worker = False
_working = threading.Lock()
_stopping = threading.Event()
_served: dict[int | None, float] = {}
_next_check = 0.0


class _Stopped(Exception):
    """Raised when the document was canceled, deleted or taken over."""


class _ShuttingDown(Exception):
    """Raised when this process is about to end."""


# When to work


async def work_if_due(run: Run | None) -> None:
    """Start reading if something is queued, at every periodic check of a server."""
    global _next_check
    if run is not None or time.monotonic() < _next_check:
        return
    _next_check = time.monotonic() + CHECK_SECONDS
    progress.bind(asyncio.get_running_loop())
    if not _working.locked() and await database.run(has_work):
        wake()


def wake() -> None:
    """Start reading in a thread, if this process does that and isn't doing so already."""
    if not progress.is_server() or _stopping.is_set() or _working.locked():
        return
    if settings.WORKERS and not is_worker and not has_work():
        return
    threading.Thread(target=_work, name="ingestion", daemon=True).start()


def has_work() -> bool:
    return _claimable(timezone.now()).exists()


async def shut_down() -> None:
    """Stop reading; what isn't finished is queued for the next process."""
    _stopping.set()
    if await asyncio.to_thread(_working.acquire, timeout=SHUTDOWN_SECONDS):
        _working.release()


def process_waiting() -> int:
    """Read everything that is queued, as a command does, and return how many documents."""
    count = 0
    while (document := claim()) is not None:
        process(document)
        count += 1
    return count


def _work() -> None:
    if not _working.acquire(blocking=False):
        return
    try:
        while not _stopping.is_set() and (document := claim()) is not None:
            process(document)
    except Exception:  # the next check tries again
        logger.exception("Can't read queued documents.")
    finally:
        _working.release()
        connections.close_all()


# Leases


def claim() -> Document | None:
    """Return the next document for this process, or None if there is none."""
    for _attempt in range(5):
        now = timezone.now()
        found = _next_document(now)
        if found is None:
            return None
        _served[found.owner_id] = time.monotonic()
        if found.attempts >= MAX_ATTEMPTS:
            _give_up(found)
            continue
        same = Document.objects.filter(
            pk=found.pk, lease_until=found.lease_until, attempts=found.attempts
        )
        if same.filter(status__in=PENDING).update(
            status=Status.READING,
            lease_until=now + LEASE,
            attempts=F("attempts") + 1,
            done=0,
            total=0,
        ):
            found.refresh_from_db()
            return found
    return None


def _claimable(now: datetime) -> QuerySet[Document]:
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    found = Document.objects.filter(free, status__in=PENDING, collection__deleted_at=None)
    if settings.WORKERS and not is_worker:
        found = found.filter(added_at__lt=now - WORKERS_FIRST)
    return found


def _next_document(now: datetime) -> Document | None:
    """Return the oldest document: files in chats first, then by the user served last."""
    waiting = _claimable(now).order_by("pk")
    if (urgent := waiting.exclude(collection__topic="").first()) is not None:
        return urgent
    owners = list(waiting.order_by().values_list("owner", flat=True).distinct()[:1_000])
    if len(owners) > 1:
        turn = min(owners, key=lambda owner: _served.get(owner, 0.0))
        waiting = waiting.filter(owner=turn)
    return waiting.first()


def _give_up(document: Document) -> None:
    same = Document.objects.filter(pk=document.pk, attempts=document.attempts)
    if same.update(status=Status.FAILED, problem=CRASHED, lease_until=None):
        document.refresh_from_db()
        progress.announce(document)


class _Lease:
    """This process's right to work on a document; renewed while it does."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._renew_at = time.monotonic() + HEARTBEAT_SECONDS
        self._save_at = 0.0

    def report(self, done: int, total: int) -> None:
        """Save and publish progress; raise if the work has to stop."""
        if _stopping.is_set():
            raise _ShuttingDown
        now, document = time.monotonic(), self.document
        is_news = (done, total) != (document.done, document.total)
        if now >= self._renew_at or (is_news and now >= self._save_at):
            document.done, document.total = done, total
            self.update(done=done, total=total)
            progress.report(document)

    def update(self, **values: object) -> None:
        """Save values and renew the lease; raise _Stopped if it was lost."""
        until = timezone.now() + LEASE
        if not self._row().update(lease_until=until, **values):
            raise _Stopped
        self.document.lease_until = until
        for name, value in values.items():
            setattr(self.document, name, value)
        self._renew_at = time.monotonic() + HEARTBEAT_SECONDS
        self._save_at = time.monotonic() + progress.INTERVAL_SECONDS

    def end(self, **values: object) -> None:
        """Save the outcome, if the lease wasn't lost meanwhile."""
        if self._row().update(lease_until=None, done=0, total=0, **values):
            self.document.refresh_from_db()
            progress.announce(self.document)

    def release(self, until: datetime | None, **values: object) -> None:
        self._row().update(status=Status.QUEUED, lease_until=until, **values)

    def _row(self) -> QuerySet[Document]:
        """Return the row while the lease is ours: its end is the token."""
        return Document.objects.filter(
            pk=self.document.pk,
            lease_until=self.document.lease_until,
            status__in=(Status.READING, Status.INDEXING),
        )


# Work


def process(document: Document) -> None:
    """Read and index a claimed document, and save the outcome."""
    lease = _Lease(document)
    progress.announce(document)
    try:
        _process(lease)
    except _Stopped:
        return
    except _ShuttingDown:
        lease.release(None, attempts=max(document.attempts - 1, 0))
    except (UnreadableDocument, FileRefused, ToolError) as error:
        lease.end(status=Status.FAILED, problem=str(error)[:500])
    except Exception:  # it is tried again, up to MAX_ATTEMPTS times
        logger.exception("Can't read document %s.", document.pk)
        if document.attempts >= MAX_ATTEMPTS:
            lease.end(status=Status.FAILED, problem=CRASHED)
        else:
            lease.release(timezone.now() + RETRY_AFTER)


def _process(lease: _Lease) -> None:
    document = lease.document
    if document.url and not web_pages.fetch(document, lease.update):
        lease.end(status=Status.READY)
        return
    if document.file is None:
        raise UnreadableDocument(FILE_GONE)
    with local_path(document.file) as path:
        parsed = _parse(lease, path)
    lease.update(status=Status.INDEXING, done=0, total=0)
    _save(lease, parsed)


def _parse(lease: _Lease, path: Path) -> ParsedDocument:
    document = lease.document
    if (read := readers.find(document.mime_type)) is not None:
        return read(path, document.name, document.mime_type, lease.report)
    return parse(
        path,
        document.name,
        mime_type=document.mime_type,
        progress=lease.report,
        deadline=DEADLINE_SECONDS,
    )


def _save(lease: _Lease, parsed: ParsedDocument) -> None:
    """Replace the document's passages, and mark it as ready."""
    document = lease.document
    sample = "\n".join(part.text[:2_000] for part in parsed.parts[:50])
    lease.update(
        title=parsed.title[:200],
        pages=parsed.pages,
        language=parsed.language or detect_language(sample),
        digest=document.file.digest if document.file else "",
    )
    try:
        index_document(document, parsed.parts, progress=lease.report)
    except DatabaseError as error:
        if Document.objects.filter(pk=document.pk).exists():
            raise
        raise _Stopped from error
    document.refresh_from_db()
    document.problem = "\n".join(parsed.notes)[:500]
    Document.objects.filter(pk=document.pk).update(
        problem=document.problem, lease_until=None, done=0, total=0, attempts=0
    )
    document.refresh_from_db()
    progress.announce(document)


@contextmanager
def local_path(file: StoredFile) -> Iterator[Path]:
    """Provide a file of the store as a file of this machine; raise UnreadableDocument."""
    storage = storages["files"]
    if not storage.exists(file.path):
        raise UnreadableDocument(FILE_GONE)
    if isinstance(storage, FileSystemStorage):
        yield Path(storage.path(file.path))
        return
    with NamedTemporaryFile(prefix="document-") as copy, file.open() as content:
        for piece in content.chunks():
            copy.write(piece)
        copy.flush()
        yield Path(copy.name)
