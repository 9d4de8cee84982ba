"""Which document a process reads next, and its right to do so.

A process claims a document by a lease and renews it while it reads. If it dies, another one
takes over when the lease has ended. A canceled or deleted document is noticed at the next
renewal.
"""

import math
import time
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents.db import jobs
from agents.models import Document

from . import progress

LEASE = timedelta(seconds=60)
HEARTBEAT_SECONDS = 10.0
MAX_ATTEMPTS = 3
# With workers, a web process only reads what none of them has taken, such as a file on a disk
# that they can't reach.
WORKERS_FIRST = timedelta(seconds=30)
CRASHED = "Reading this file failed several times. Check the server's log."
ENDED_PROCESS = (
    "Reading this file ended the process that read it, twice ({signal}). It may need more "
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


class Stopped(Exception):
    """Raised when the document was canceled, deleted or taken over."""


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
        found = _next_document(now, lane, busy)
        if found is None:
            return None
        _served[found.owner_id] = time.monotonic()
        # One that was given back is queued; the process of any other has ended.
        has_died = found.status != Status.QUEUED
        same = Document.objects.filter(pk=found.pk, lease_until=found.lease_until)
        if same.filter(status__in=PENDING).update(
            status=Status.READING, lease_until=now + LEASE, done=0, total=0
        ):
            found.refresh_from_db()
            found.needs_isolation = jobs.take_over(KIND, found.pk, 0, has_died=has_died)
            return found
    return None


def lanes_with_work() -> set[LaneKind]:
    """Return which lanes have documents."""
    waiting = _claimable(timezone.now()).order_by()
    kinds = waiting.values_list("is_slow", "collection__topic").distinct()
    return {LaneKind(is_slow, bool(topic)) for is_slow, topic in kinds}


def _claimable(now: datetime) -> QuerySet[Document]:
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    found = Document.objects.filter(free, status__in=PENDING, collection__deleted_at=None)
    if settings.WORKERS and not is_worker:
        found = found.filter(added_at__lt=now - WORKERS_FIRST)
    return found


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

    def update(self, **values: object) -> None:
        """Save values and renew the lease; raise Stopped if it was lost."""
        until = timezone.now() + LEASE
        if not self._row().update(lease_until=until, **values):
            raise Stopped
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
        """Return the row while the lease is ours: its end is the token.

        Canceling and taking over change it, and so does the user who adds the file again.
        """
        return Document.objects.filter(
            pk=self.document.pk, lease_until=self.document.lease_until
        )
