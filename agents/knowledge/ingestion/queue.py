"""Reads queued documents in the background, in threads of each process.

Most files take seconds. Recordings, images and scanned pages take minutes, so they have a lane
of their own, and what turns out to take long moves there. Files that a chat waits for don't
wait for those of libraries. In each lane, a user has one thread at most, and users take turns.
"""

import asyncio
import logging
import threading
import time
from datetime import timedelta

from django.conf import settings
from django.core.files.storage import storages
from django.db import connections
from django.utils import timezone

from agents.db import claims, database, jobs
from agents.db.periodic import periodic
from agents.db.sanitize import visible_name
from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import joined
from agents.knowledge import embeddings
from agents.knowledge.documents import clean_text, index_document
from agents.knowledge.files import FileRefused
from agents.knowledge.files.store import local_path
from agents.knowledge.parsing import NeedsRecognition, ParsedDocument, UnreadableDocument, parse
from agents.knowledge.retrieval.tokenizer import detect_language
from agents.metering.budgets import paying
from agents.models import Document, ReadingUsage

from . import leases, progress, readers, web_pages
from .leases import (
    CRASHED,
    ENDED_PROCESS,
    KIND,
    MAX_ATTEMPTS,
    LaneKind,
    Lease,
    ShuttingDown,
    TakesLong,
    claim,
    lane_kind,
)
from .look_alikes import distinct_title
from .progress import register_publisher

__all__ = ["process", "process_waiting", "register_publisher", "shut_down", "read_queued"]

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 1_800.0  # recognizing a scanned page takes some seconds
# What takes longer to read, or has more text to index, moves to the slow lane.
NORMAL_SECONDS = 20.0
NORMAL_CHARS = 500_000
OWN_EMBEDDINGS = (embeddings.LOCAL, embeddings.DEMO, embeddings.OFF)
RETRY_AFTER = timedelta(seconds=30)
CHECK_SECONDS = 4.0
SHUTDOWN_SECONDS = 5.0
USAGE_FIELDS = ("model", "cost", "prompt_tokens", "completion_tokens")
FILE_GONE = _("The uploaded file is missing on the server. Upload it again.")

Status = Document.Status

_in_hand: set[Lease] = set()


class Lane:
    """Threads that read one kind of document, at most `slots` at once."""

    def __init__(self, kind: LaneKind, *, slots: int) -> None:
        self.kind = kind
        self._name = "ingestion-slow" if kind.is_slow else "ingestion"
        self._slots = threading.Semaphore(slots)
        self._count = slots
        self._claim_lock = threading.Lock()
        self._busy: list[int | None] = []  # owners whose documents are being read

    def start(self) -> None:
        """Read in a thread, if one is free."""
        if not leases.stopping.is_set() and self._slots.acquire(blocking=False):
            threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def wait(self, until: float) -> None:
        """Wait until no thread reads any more, or it is too late."""
        for _slot in range(self._count):
            self._slots.acquire(timeout=max(0.0, until - time.monotonic()))

    def read_all(self) -> None:
        """Read documents until none is left for this lane."""
        while not leases.stopping.is_set() and (document := self._claim()) is not None:
            try:
                process(document, is_slow=self.kind.is_slow)
            finally:
                self._busy.remove(document.owner_id)

    def _work(self) -> None:
        try:
            self.read_all()
        except Exception:  # the next check tries again
            logger.exception("Can't read queued documents.")
        finally:
            self._slots.release()
            connections.close_all()

    def _claim(self) -> Document | None:
        # One user's long files must not take all slots.
        with self._claim_lock:
            document = claim(self.kind, busy=self._busy)
            if document is not None:
                self._busy.append(document.owner_id)
        return document


LANES = {
    kind: Lane(kind, slots=slots)
    for kind, slots in {
        LaneKind(is_slow=False, is_urgent=True): 4,
        LaneKind(is_slow=False, is_urgent=False): 2,
        LaneKind(is_slow=True, is_urgent=True): 3,
        LaneKind(is_slow=True, is_urgent=False): 2,
    }.items()
}


@periodic("documents", every=CHECK_SECONDS)
async def read_queued() -> None:
    """Start reading if something is queued."""
    progress.bind(asyncio.get_running_loop())
    for kind in await database.run(leases.lanes_with_work):
        LANES[kind].start()


def wake(document: Document) -> None:
    """Start reading in a thread, if this process does that and has a free one."""
    if not progress.is_server():
        return
    kind = lane_kind(document)
    if settings.WORKERS and not leases.is_worker and kind not in leases.lanes_with_work():
        return
    LANES[kind].start()


async def shut_down() -> None:
    """Stop reading; what isn't finished is queued for the next process."""
    leases.stopping.set()
    until = time.monotonic() + SHUTDOWN_SECONDS
    for lane in LANES.values():
        await asyncio.to_thread(lane.wait, until)
    await database.run(give_back)


def give_back() -> None:
    """Queue what is still being read, too slowly to stop in time, for the next process."""
    for lease in list(_in_hand):
        lease.release()


def process_waiting() -> int:
    """Read everything that is queued in this thread, and return how many documents."""
    count = 0
    while (document := claim()) is not None:
        process(document)
        count += 1
    return count


def process(document: Document, *, is_slow: bool = True) -> None:
    """Read and index a claimed document, and save the outcome.

    Unless it may be slow, one that needs text recognition or takes long moves to the slow lane.
    """
    if document.needs_isolation:
        _process_isolated(document)
        return
    lease = Lease(document) if is_slow else Lease(document, NORMAL_SECONDS)
    _in_hand.add(lease)
    progress.announce(document)
    try:
        with paying(user=document.owner_id):
            _process(lease, is_slow=is_slow)
    except claims.ClaimLost:
        return
    except (NeedsRecognition, TakesLong):
        document.is_slow = True
        lease.release(is_slow=True)
        wake(document)
    except ShuttingDown:
        lease.release()
    except (UnreadableDocument, FileRefused, ToolError) as error:
        lease.end(status=Status.FAILED, problem=str(error))
    except Exception:  # it is tried again, up to MAX_ATTEMPTS times
        if leases.stopping.is_set():  # the interpreter ends under it, so it isn't the file
            lease.release()
            return
        logger.exception("Can't read document %s.", document.pk)
        attempts = document.attempts + 1
        if attempts >= MAX_ATTEMPTS:
            lease.end(status=Status.FAILED, problem=CRASHED, attempts=attempts)
        else:
            lease.release(timezone.now() + RETRY_AFTER, attempts=attempts)
    finally:
        _in_hand.discard(lease)


def _process_isolated(document: Document) -> None:
    """Read a claimed document in a process of its own, and give it up if it ends that, too."""
    row = Document.objects.filter(pk=document.pk)

    def announce() -> None:
        if (current := row.first()) is not None:
            progress.report(current)

    try:
        ended_by = jobs.isolate(KIND, document.pk, document.lease, watch=announce)
    except jobs.NotIsolated:
        Lease(document).release(timezone.now() + RETRY_AFTER)
        return
    current = row.first()
    if current is None:  # deleted meanwhile
        return
    if not ended_by:
        progress.announce(current)
    elif jobs.record_crash(KIND, document.pk, 0):
        problem = ENDED_PROCESS.fill(signal=ended_by)
        Lease(document).end(status=Status.FAILED, problem=problem)
    else:
        Lease(document).release()


def process_claimed(pk: int, lease: str) -> None:
    """Read a document in this process with the lease of another one, if it still holds."""
    if (document := Document.objects.filter(pk=pk, lease=lease).first()) is not None:
        process(document)


def _process(lease: Lease, *, is_slow: bool) -> None:
    document = lease.document
    if document.url and not _fetch(lease):
        return
    if document.file is None or not storages["files"].exists(document.file.path):
        raise UnreadableDocument(FILE_GONE)
    with local_path(document.file) as path:
        if (reader := readers.find(document.mime_type)) is not None:
            parsed = reader(
                path,
                document.name,
                document.mime_type,
                lease.report,
                is_private=document.is_private,
            )
            if document.owner_id is not None:
                # Remember what reading has cost, for the first run that gets the file.
                ReadingUsage.objects.bulk_create(
                    ReadingUsage(
                        user_id=document.owner_id,
                        digest=document.file.digest,
                        **{name: usage[name] for name in USAGE_FIELDS},
                    )
                    for usage in parsed.usage
                )
        else:
            parsed = parse(
                path,
                document.name,
                mime_type=document.mime_type,
                progress=lease.report,
                deadline=DEADLINE_SECONDS,
                recognizes=is_slow,
            )
    if not is_slow and sum(len(part.text) for part in parsed.parts) > NORMAL_CHARS:
        raise TakesLong
    # From here on, doing it again could cost money, unless passages are embedded here: then it
    # costs processor time, which is what a normal lane is short of.
    if embeddings.configured_model() not in OWN_EMBEDDINGS:
        lease.lift_limit()
    lease.update(status=Status.INDEXING, done=0, total=0)
    _save(lease, parsed)


def _fetch(lease: Lease) -> bool:
    """Fetch a page; return whether it has to be read, because it is new or has changed.

    If that fails, a page that was read before stays as it is, with a note.
    """
    document = lease.document
    now = timezone.now()
    try:
        has_changed = web_pages.fetch(document, lease.update)
    except (ToolError, FileRefused) as error:
        if document.indexed_at is None:
            raise
        next_fetch_at = document.next_fetch_at
        if next_fetch_at is not None and getattr(error, "is_passing", False):
            next_fetch_at = min(next_fetch_at, now + web_pages.RETRY_AFTER)
        problem = web_pages.describe_failure(error)[:500]
        lease.end(
            status=Status.READY,
            fetched_at=now,
            fetch_problem=problem,
            next_fetch_at=next_fetch_at,
        )
        return False
    lease.update(fetched_at=now, fetch_problem="")
    if not has_changed:
        lease.end(status=Status.READY)
    return has_changed


def _save(lease: Lease, parsed: ParsedDocument) -> None:
    """Replace the document's passages, and mark it as ready."""
    document = lease.document
    # A page that was fetched again can have the text that is indexed already.
    is_same = (
        bool(document.url)
        and document.indexed_at is not None
        and document.title == visible_name(parsed.title)[:200]
        and list(document.parts.values_list("number", "kind", "label", "text"))
        == [(p.number, p.kind, p.label[:200], clean_text(p.text)) for p in parsed.parts]
    )
    sample = "\n".join(part.text[:2_000] for part in parsed.parts[:50])
    lease.update(
        title=distinct_title(document, visible_name(parsed.title)),
        pages=parsed.pages,
        language=parsed.language or detect_language(sample),
        digest=document.file.digest if document.file else "",
    )
    problem = joined("\n", parsed.notes)
    if is_same:
        lease.end(status=Status.READY, problem=problem, attempts=0)
        return
    # Who lost the lease, because it was canceled, deleted or taken over, saves nothing.
    index_document(document, parsed.parts, progress=lease.report, before_saving=lease.update)
    lease.end(problem=problem, attempts=0)
