"""Deletes data past its retention period: by a command, and once a day by the server."""

import time
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from agents.access import audit, recently_deleted
from agents.accounts.users import invitations
from agents.catalog.attachments import file_tables
from agents.db.installation import configured
from agents.db.periodic import periodic
from agents.knowledge.files import store as file_store
from agents.memory import store as note_store
from agents.metering.budgets import counters
from agents.models import (
    AuditEntry,
    AuditPerson,
    Collection,
    PeriodicJob,
    ReadingUsage,
    Run,
)
from agents.models.runs.runs import API_TOPIC_PREFIX
from agents.review.experiments import service as experiments
from agents.review.models import Example, Review
from chat.attachments import reading, uploads
from chat.models import ApiRequest, ChatSession, Message
from chat.sessions import batched_delete, server_files
from chat.sharing import public_links
from chat.transfer.imports import jobs

from . import erasure

JOB_NAME = "prune"
RESUME_AFTER = timedelta(minutes=5)
PAGE_SIZE = 200
PAUSE_SECONDS = 0.02
# Of files that were read for no run.
UNPAID_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """How much was deleted, or would be; `spared` is old but protected."""

    sessions: int = 0
    runs: int = 0
    spared: int = 0
    entries: int = 0
    signins: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.sessions or self.runs or self.entries or self.signins)


def prune(*, dry_run: bool = False) -> PruneResult:
    """Delete what is too old, in batches; with `dry_run` only count it."""
    started_at = timezone.now()
    cutoff = _cutoff(started_at, configured.RUN_RETENTION_DAYS.value)
    sessions, runs, spared = _prune_runs(cutoff, dry_run) if cutoff else (0, 0, 0)
    audit_cutoff = _cutoff(started_at, configured.AUDIT_RETENTION_DAYS.value)
    expired = Session.objects.filter(expire_date__lt=started_at)
    entries = 0
    signins = 0
    if dry_run:
        signins = expired.count()
        if audit_cutoff is not None:
            entries = AuditEntry.objects.filter(at__lt=audit_cutoff).count()
    else:
        while page := list(expired.values_list("pk", flat=True)[:PAGE_SIZE]):
            signins += Session.objects.filter(pk__in=page).delete()[0]
        if audit_cutoff is not None:
            entries = audit.truncate(before=audit_cutoff)
    result = PruneResult(
        sessions=sessions, runs=runs, spared=spared, entries=entries, signins=signins
    )
    if not dry_run:
        server_files.delete_unowned()
        uploads.delete_unsent()
        file_tables.delete_unused()
        file_store.sweep()
        recently_deleted.erase_due()
        counters.delete_old(started_at)
        unpaid = started_at - timedelta(days=UNPAID_DAYS)
        ReadingUsage.objects.filter(created_at__lt=unpaid).delete()
        public_links.delete_expired()
        note_store.delete_expired()
        invitations.delete_old()
        jobs.delete_old(started_at)
        forgotten = started_at - ApiRequest.REMEMBERED_FOR
        ApiRequest.objects.filter(created_at__lt=forgotten).delete()
        if cutoff:
            experiments.delete_old(cutoff)
        # For the health page.
        values = {"started_at": started_at, "result": asdict(result)}
        PeriodicJob.objects.update_or_create(values, name=JOB_NAME)
        if not result.is_empty:
            audit.record(None, audit.PRUNED, "retention", **asdict(result))
    return result


@periodic(JOB_NAME, every=86_400, once=True)
def prune_daily() -> None:
    prune()


def has_unfinished_erasures() -> bool:
    return _unfinished_erasures().exists()


@periodic("erasures", every=60, when=has_unfinished_erasures)
def finish_erasures() -> None:
    """Finish what a process that ended has left."""
    unfinished = list(_unfinished_erasures().select_related("user"))
    for person in unfinished:
        if person.user is not None:
            erasure.finish(person.user)
    if any(person.user is None for person in unfinished):
        erasure.overwrite_deleted()


def _unfinished_erasures() -> QuerySet[AuditPerson]:
    return AuditPerson.objects.filter(leaves_at__lt=timezone.now() - RESUME_AFTER)


def protected_runs(cutoff: datetime) -> set[int]:
    """Return runs that stay at any age: live, in review, or saved as an example.

    The origins of their reruns stay too, because deleting them would delete the reruns.
    """
    open_reviews = Review.objects.open().values("run")
    examples = Example.objects.exclude(run=None).values("run")
    is_recent_rerun = Q(origin__isnull=False, started_at__gte=cutoff)
    is_protected = (
        Q(status__in=Run.LIVE) | Q(pk__in=open_reviews) | Q(pk__in=examples) | is_recent_rerun
    )
    protected = set(Run.objects.filter(is_protected).values_list("pk", flat=True))
    new = protected
    while new:
        origins = Run.objects.filter(pk__in=new).exclude(origin=None)
        new = {pk for pk in origins.values_list("origin", flat=True) if pk} - protected
        protected |= new
    return protected


def _cutoff(moment: datetime, days: int | None) -> datetime | None:
    return moment - timedelta(days=days) if days else None


def _prune_runs(cutoff: datetime, dry_run: bool) -> tuple[int, int, int]:
    """Delete old chats and runs; return how many chats, runs, and protected runs."""
    protected = protected_runs(cutoff)
    old_sessions = ChatSession.objects.filter(updated_at__lt=cutoff).order_by("pk")
    kept_messages = Message.objects.filter(session=OuterRef("pk"), run__in=protected)
    standalone_runs = Run.objects.filter(started_at__lt=cutoff, message=None)
    protected_in_chats = Run.objects.filter(message__session__in=old_sessions, pk__in=protected)
    spared = protected_in_chats.count() + standalone_runs.filter(pk__in=protected).count()
    sessions = old_sessions.exclude(Exists(kept_messages))
    runs = standalone_runs.exclude(pk__in=protected)
    chat_runs = Run.objects.filter(message__session__in=sessions)
    counts = (sessions.count(), chat_runs.count() + runs.count(), spared)
    if dry_run:
        return counts
    last = 0
    while page := list(sessions.filter(pk__gt=last)[:PAGE_SIZE]):
        last = page[-1].pk  # a deleted row has no id
        for session in page:
            while batched_delete.delete_session_batch(session, cutoff):
                time.sleep(PAUSE_SECONDS)
    while batched_delete.delete_run_batch(runs):
        time.sleep(PAUSE_SECONDS)
    # Files that programs sent with questions whose runs are deleted.
    left = Run.objects.filter(topic=OuterRef("topic"))
    files = Collection.objects.filter(topic__startswith=API_TOPIC_PREFIX)
    for topic in files.exclude(Exists(left)).values_list("topic", flat=True):
        reading.delete_collection(topic)
    return counts
