"""What was kept long enough is deleted: by a command, and by the server itself once a day."""

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connections
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from agents.access import audit
from agents.db import database
from agents.models import AuditEntry, AuditPerson, Run, Upkeep
from agents.review.models import Example, Review
from chat.models import ChatSession, Message

from . import batched_delete, erasure

logger = logging.getLogger(__name__)

NAME = "prune"
EVERY = timedelta(days=1)
LOOK = 60.0
LEFT_FOR = timedelta(minutes=5)
A_PAGE = 200
BREATH = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """How much was deleted, or would be; `spared` is old, and stays for a reason."""

    sessions: int = 0
    runs: int = 0
    spared: int = 0
    entries: int = 0
    signins: int = 0

    @property
    def is_nothing(self) -> bool:
        return not (self.sessions or self.runs or self.entries or self.signins)


def prune(*, dry_run: bool = False) -> Pruned:
    """Delete what is too old, in small bits; with `dry_run` only count it."""
    now = timezone.now()
    old = _before(now, settings.KEEP_RUNS_DAYS)
    sessions, runs, spared = _prune_runs(old, dry_run) if old else (0, 0, 0)
    done = Pruned(
        sessions=sessions,
        runs=runs,
        spared=spared,
        entries=_prune_entries(_before(now, settings.KEEP_AUDIT_DAYS), dry_run),
        signins=_prune_signins(now, dry_run),
    )
    if not dry_run:
        _remember(done, now)
    return done


async def look_around(run: Run | None) -> None:
    """Once a day, by whichever process comes first, in a thread of its own."""
    global _next_look
    if run is not None or time.monotonic() < _next_look:
        return
    _next_look = time.monotonic() + LOOK
    is_due, left = await database.ask(_due, timezone.now())
    if is_due or left:
        threading.Thread(target=_work, args=[is_due], name="upkeep", daemon=True).start()


_next_look = 0.0


def spared(before: datetime) -> set[int]:
    """Runs that stay however old: live, in review, kept as an example; and what these are
    runs again of, which they would go with."""
    open_reviews = Review.objects.open().values("run")
    examples = Example.objects.exclude(run=None).values("run")
    again = Q(origin__isnull=False, started_at__gte=before)
    stays = Q(status__in=Run.LIVE) | Q(pk__in=open_reviews) | Q(pk__in=examples) | again
    found = set(Run.objects.filter(stays).values_list("pk", flat=True))
    newly = found
    while newly:
        origins = Run.objects.filter(pk__in=newly).exclude(origin=None)
        newly = set(origins.values_list("origin", flat=True)) - found
        found |= newly
    return found


def _due(now: datetime) -> tuple[bool, bool]:
    """Whether it is this process's turn, and whether an erasure was cut off."""
    Upkeep.objects.get_or_create(name=NAME)
    waits = Q(at=None) | Q(at__lt=now - EVERY)
    is_due = Upkeep.objects.filter(waits, name=NAME).update(at=now) == 1
    return is_due, _left(now).exists()


def _left(now: datetime) -> QuerySet[AuditPerson]:
    return AuditPerson.objects.filter(leaves_at__lt=now - LEFT_FOR, user__isnull=False)


def _work(is_due: bool) -> None:
    try:
        for person in _left(timezone.now()).select_related("user"):
            erasure.finish(person.user)
        if is_due:
            prune()
    except Exception:  # whatever it was, tomorrow is another day
        logger.exception("What is too old could not be deleted.")
    finally:
        connections.close_all()


def _before(now: datetime, days: int | None) -> datetime | None:
    return now - timedelta(days=days) if days else None


def _prune_runs(before: datetime, dry_run: bool) -> tuple[int, int, int]:
    stays = spared(before)
    old = ChatSession.objects.filter(updated_at__lt=before).order_by("pk")
    kept = Message.objects.filter(session=OuterRef("pk"), run__in=stays)
    alone = Run.objects.filter(started_at__lt=before, message=None)
    theirs = Run.objects.filter(message__session__in=old, pk__in=stays)
    count = theirs.count() + alone.filter(pk__in=stays).count()
    sessions, runs = old.exclude(Exists(kept)), alone.exclude(pk__in=stays)
    inside = Run.objects.filter(message__session__in=sessions)
    gone = sessions.count(), inside.count() + runs.count(), count
    if not dry_run:
        for session in _one_by_one(sessions):
            while batched_delete.shrink(session, before):
                time.sleep(BREATH)
        while batched_delete.shrink_runs(runs):
            time.sleep(BREATH)
    return gone


def _one_by_one(sessions: QuerySet[ChatSession]) -> Iterator[ChatSession]:
    last = 0
    while page := list(sessions.filter(pk__gt=last)[:A_PAGE]):
        last = page[-1].pk  # what is deleted has none any more
        yield from page


def _prune_entries(before: datetime | None, dry_run: bool) -> int:
    if before is None:
        return 0
    if dry_run:
        return AuditEntry.objects.filter(at__lt=before).count()
    return audit.cut(before=before)


def _prune_signins(now: datetime, dry_run: bool) -> int:
    over = Session.objects.filter(expire_date__lt=now)
    if dry_run:
        return over.count()
    gone = 0
    while page := list(over.values_list("pk", flat=True)[:A_PAGE]):
        gone += Session.objects.filter(pk__in=page).delete()[0]
    return gone


def _remember(done: Pruned, now: datetime) -> None:
    """On the health page always, and in the log where anything was deleted."""
    Upkeep.objects.update_or_create({"at": now, "report": asdict(done)}, name=NAME)
    if not done.is_nothing:
        audit.record(None, audit.PRUNED, "retention", **asdict(done))
