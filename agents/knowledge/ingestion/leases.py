"""Which document a process reads next, and its right to do so.

A process takes a document's lease and renews it while it reads (`agents.db.claims`). A canceled
or deleted document is noticed at the next renewal.
"""

import math
import time
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents.db import claims, jobs
from agents.engine.sentences import Sentence as _
from agents.models import Document

from . import progress

HEARTBEAT_SECONDS = 10.0
MAX_ATTEMPTS = 3
# With workers, a web process only reads what none of them has taken, such as a file on a disk
# that they can't reach.
WORKERS_FIRST = timedelta(seconds=30)
CRASHED = _("Reading this file failed several times. Check the server's log.")
ENDED_PROCESS = _(
    "The process that reads this file crashed twice (%(signal)s). The file may need more "
    "memory than this server has. Split it or save it in another format, then try again."
)

KIND = "document"
Status = Document.Status
PENDING = (Status.QUEUED, Status.READING, Status.INDEXING)

is_worker = False
stopping = jobs.stopping
_served: dict[int | None, float] = {}


class LaneKind(NamedTuple):
    """Which documents are read together: slow ones, and those that a chat waits for, apart."""

    is_slow: bool
    is_urgent: bool


def lane_kind(document: Document) -> LaneKind:
    return LaneKind(document.is_slow, bool(document.collection.topic))


class ShuttingDown(Exception):
    """Raised when this process is about to end."""


class TakesLong(Exception):
    """Raised when a document takes longer than its lane allows."""


def claim(lane: LaneKind | None = None, busy: Collection[int | None] = ()) -> Document | None:
    """Return the next document for this process, or None if there is none.

    With a lane, only of its kind. Files of the users in `busy` wait.
    """
    for _attempt in range(5):
        now = timezone.now()
        document = _next_document(now, lane, busy)
        if document is None:
            return None
        _served[document.owner_id] = time.monotonic()
        pending = Document.objects.filter(status__in=PENDING)
        if claims.take(document, among=pending, status=Status.READING, done=0, total=0):
            document.needs_isolation = jobs.take_over(
                KIND, document.pk, 0, has_died=document.was_abandoned
            )
            return document
    return None


def lanes_with_work() -> set[LaneKind]:
    """Return which lanes have documents."""
    waiting = _claimable(timezone.now()).order_by()
    kinds = waiting.values_list("is_slow", "collection__topic").distinct()
    return {LaneKind(is_slow, bool(topic)) for is_slow, topic in kinds}


def _claimable(now: datetime) -> QuerySet[Document]:
    documents = Document.objects.filter(
        claims.is_due(now), status__in=PENDING, collection__deleted_at=None
    )
    if settings.WORKERS and not is_worker:
        documents = documents.filter(added_at__lt=now - WORKERS_FIRST)
    return documents


def _next_document(
    now: datetime, lane: LaneKind | None, busy: Collection[int | None]
) -> Document | None:
    """Return the next document: files in chats first, then of the user served longest ago.

    What is read for the first time comes before what is only updated.
    """
    waiting = _claimable(now)
    is_urgent = ~Q(collection__topic="")
    if lane is not None:
        condition = is_urgent if lane.is_urgent else ~is_urgent
        waiting = waiting.filter(condition, is_slow=lane.is_slow)
    elif waiting.filter(is_urgent).exists():
        waiting = waiting.filter(is_urgent)
    waiting = waiting.order_by(F("indexed_at").asc(nulls_first=True), "pk")
    owners = waiting.order_by().values_list("owner", flat=True).distinct()[:1_000]
    waiting_owners = [owner for owner in owners if owner not in busy]
    if not waiting_owners:
        return None
    next_owner = min(waiting_owners, key=lambda owner: _served.get(owner, 0.0))
    return waiting.filter(owner=next_owner).first()


class Lease:
    """This process's right to work on a document; renewed while it does."""

    def __init__(self, document: Document, seconds: float = math.inf) -> None:
        self.document = document
        self._end = time.monotonic() + seconds
        self._renew_at = time.monotonic() + HEARTBEAT_SECONDS
        self._save_at = 0.0

    def report(self, done: int, total: int) -> None:
        """Save and publish progress; raise if the work has to stop."""
        if stopping.is_set():
            raise ShuttingDown
        now = time.monotonic()
        document = self.document
        if now > self._end:
            raise TakesLong
        has_changed = (done, total) != (document.done, document.total)
        if now >= self._renew_at or (has_changed and now >= self._save_at):
            document.done = done
            document.total = total
            self.update(done=done, total=total)
            progress.report(document)

    def lift_limit(self) -> None:
        """Don't raise TakesLong any more."""
        self._end = math.inf

    def update(self, **values: Any) -> None:
        """Save values and renew the lease; raise ClaimLost."""
        claims.renew(self.document, **values)
        self._renew_at = time.monotonic() + HEARTBEAT_SECONDS
        self._save_at = time.monotonic() + progress.INTERVAL_SECONDS

    def end(self, **values: Any) -> None:
        """Save the outcome, if the lease wasn't lost meanwhile."""
        if claims.release(self.document, done=0, total=0, **values):
            self.document.refresh_from_db()
            progress.announce(self.document)

    def release(self, until: datetime | None = None, **values: Any) -> None:
        claims.release(self.document, until=until, status=Status.QUEUED, **values)
