"""Imports in the background: count, then import, one chat per transaction.

A process that has the files takes the import's lease (`agents.db.claims`). If it dies, another
one with the files continues: what is imported already is found by its original id. What a death
means for the import is decided by `agents.db.jobs`.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import connections, transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.access import audit
from agents.db import claims, database, jobs
from agents.db.compiled_queries import compiled_query
from agents.db.errors import is_disk_full
from agents.db.installation import configured
from agents.db.periodic import periodic
from agents.db.sanitize import sanitize_text
from agents.metering import budgets
from chat.models import ChatImport, ImportResult
from chat.transfer.imports import archive, rows, storage, trees
from chat.transfer.imports.values import LimitExceeded, NotImportable, Problem, SourceChat

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
RETRY_AFTER = timedelta(seconds=60)
LOST_AFTER = timedelta(minutes=10)
READY_FOR = timedelta(days=1)
KEPT_FOR = timedelta(days=30)
KIND = "import"
MAX_ATTEMPTS = 3
PAUSE_SECONDS = 0.005  # between chats, so that other writers get their turn
MAX_FILES = 20
MAX_NAME_CHARS = 200

Status = ChatImport.Status
Outcome = ImportResult.Outcome

_in_hand: set[int] = set()


class ImportRejected(Exception):
    """Raised when an upload isn't accepted; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _ShuttingDown(Exception):
    """Raised when this process is about to end."""


def create(user: User, files: list[UploadedFile]) -> ChatImport:
    """Save uploaded files as a new import; raise ImportRejected."""
    if not files:
        raise ImportRejected("no_file")
    if len(files) > MAX_FILES:
        raise ImportRejected("too_many_uploads")
    if sum(file.size or 0 for file in files) > configured.IMPORT_MB.value * 1024**2:
        raise ImportRejected("too_large_upload")
    with transaction.atomic():
        budgets.lock_user(user)
        imports = ChatImport.objects.for_user(user)
        if imports.active().exists():
            raise ImportRejected("already_running")
        unconfirmed = list(imports.filter(status=Status.READY))
        names = [sanitize_text(file.name or "")[:MAX_NAME_CHARS] for file in files]
        until = timezone.now() + ChatImport.LEASE  # it is started here, once files are saved
        job = ChatImport.objects.create(user=user, files=names, lease_until=until)
    for replaced in unconfirmed:
        cancel(replaced)
    try:
        storage.save(job.pk, files)
    except OSError as error:
        # The files first: a deleted row has no ID any more.
        storage.delete(job.pk)
        job.delete()
        raise ImportRejected("disk_full" if is_disk_full(error) else "not_saved") from error
    return job


@transaction.atomic
def confirm(job: ChatImport) -> bool:
    """Import what was counted; return False if that isn't possible any more."""
    budgets.lock_user(job.user)
    if ChatImport.objects.for_user(job.user).active().exists():
        return False
    ready = ChatImport.objects.filter(pk=job.pk, status=Status.READY, found__gt=0)
    updated = ready.update(
        status=Status.RUNNING,
        lease="",
        lease_until=timezone.now() + ChatImport.LEASE,  # it is started here
        attempts=0,
        done=0,
        problem="",
    )
    return updated == 1


def cancel(job: ChatImport) -> None:
    """Stop an import; chats that are imported already stay."""
    live = ChatImport.objects.filter(pk=job.pk, status__in=(Status.READY, *ChatImport.ACTIVE))
    if live.update(status=Status.CANCELLED, ended_at=timezone.now(), **claims.NO_LEASE):
        storage.delete(job.pk)


def cancel_all(user: User) -> None:
    """Stop a user's imports and delete their files."""
    for job in ChatImport.objects.for_user(user):
        cancel(job)


def start(job: ChatImport) -> None:
    """Work on the import in a thread of this process."""

    def work_in_thread() -> None:
        try:
            with jobs.in_hand():
                work(job.pk)
        finally:
            connections.close_all()

    threading.Thread(target=work_in_thread, name=f"import-{job.pk}", daemon=True).start()


@periodic("imports", every=HEARTBEAT_SECONDS)
async def resume_abandoned() -> None:
    """Continue imports whose process has died."""
    for job in await database.run(find_abandoned, timezone.now()):
        start(job)


def find_abandoned(moment: datetime) -> list[ChatImport]:
    """Return stale imports whose files are on this machine, and end those that can't go on."""
    abandoned = []
    for job in _active_jobs():
        if job.lease_until is not None and job.lease_until >= moment:
            continue
        if storage.is_here(job):
            abandoned.append(job)
        elif (job.lease_until or job.created_at) < moment - LOST_AFTER:
            _end(job, Status.FAILED, Problem.FILE_GONE)
    return abandoned


@compiled_query
def _active_jobs() -> QuerySet[ChatImport]:
    return ChatImport.objects.active()


def delete_old(moment: datetime) -> None:
    """Delete finished imports after a while, with their results, and files left behind."""
    unconfirmed = ChatImport.objects.filter(status=Status.READY)
    for job in unconfirmed.filter(created_at__lt=moment - READY_FOR):
        cancel(job)
    ChatImport.objects.filter(ended_at__lt=moment - KEPT_FOR).delete()
    storage.delete_unowned()


def work(pk: int) -> None:
    """Count or import, if no other process does."""
    if pk in _in_hand or jobs.stopping.is_set():
        return
    _in_hand.add(pk)
    try:
        active = ChatImport.objects.active()
        job = active.select_related("user").filter(pk=pk).first()
        if job is None or not claims.take(job, among=active):
            return
        if jobs.take_over(KIND, pk, _progress(job), has_died=job.was_abandoned):
            _work_isolated(job)
        else:
            _work(job)
    finally:
        _in_hand.discard(pk)


def _work(job: ChatImport) -> None:
    try:
        if job.status == Status.COUNTING:
            _count(job)
        else:
            _import(job)
    except claims.ClaimLost:
        return
    except _ShuttingDown:
        claims.release(job)
    except LimitExceeded as limit:
        _end(job, Status.FAILED, limit.problem)
    except Exception:  # it is tried again, up to MAX_ATTEMPTS times
        logger.exception("Can't complete chat import %s.", job.pk)
        if job.attempts + 1 >= MAX_ATTEMPTS:
            _end(job, Status.FAILED, Problem.UNEXPECTED)
        else:
            _retry_later(job, attempts=job.attempts + 1)


def _work_isolated(job: ChatImport) -> None:
    """Work on a claimed import in a process of its own; end it if it ends that, too."""
    try:
        ended_by = jobs.isolate(KIND, job.pk, job.lease)
    except jobs.NotIsolated:
        _retry_later(job)
        return
    if not ended_by:
        return
    if jobs.record_crash(KIND, job.pk, _progress(job)):
        _end(job, Status.FAILED, Problem.CRASHED)
    else:
        claims.release(job)


def work_claimed(pk: int, lease: str) -> None:
    """Work on an import in this process with the lease of another one, if it still holds."""
    mine = ChatImport.objects.active().filter(pk=pk, lease=lease)
    if (job := mine.select_related("user").first()) is not None:
        _work(job)


def _retry_later(job: ChatImport, **values: object) -> None:
    claims.release(job, until=timezone.now() + RETRY_AFTER, **values)


def _progress(job: ChatImport) -> int:
    return job.results.filter(outcome=Outcome.IMPORTED).count()


def _count(job: ChatImport) -> None:
    """Read everything and save nothing but what would be imported."""
    sources: Counter[str] = Counter()
    new_count = 0
    results = []
    for number, entry in enumerate(_chats(job), start=1):
        try:
            chat, _conversation = _read(entry)
        except NotImportable as problem:
            results.append(_problem_result(job, number, entry, problem.problem))
            continue
        sources[chat.agent] += 1
        new_count += rows.find_known(job.user, chat) is None
    # The one reason why nothing was found, or that there are no chats.
    problems = {result.problem for result in results}
    why_nothing = problems.pop() if len(problems) == 1 else Problem.NO_CHATS.value
    with transaction.atomic():
        is_released = claims.release(
            job,
            status=Status.READY if sources else Status.FAILED,
            problem="" if sources else why_nothing,
            sources=dict(sources.most_common()),
            found=sum(sources.values()),
            is_new=new_count,
            ended_at=None if sources else timezone.now(),
        )
        if not is_released:
            raise claims.ClaimLost
        ImportResult.objects.filter(chat_import=job.pk).delete()
        ImportResult.objects.bulk_create(results, 500)
    if not sources:
        storage.delete(job.pk)


def _import(job: ChatImport) -> None:
    # After a crash it starts over: what was imported is now known.
    results = ImportResult.objects.filter(chat_import=job.pk)
    results.exclude(outcome=Outcome.IMPORTED).delete()
    imported_numbers = set(results.values_list("number", flat=True))
    for number, entry in enumerate(_chats(job), start=1):
        if number not in imported_numbers:
            _import_one(job, number, entry)
            time.sleep(PAUSE_SECONDS)
    _end(job, Status.DONE)
    imported = job.results.filter(outcome=Outcome.IMPORTED).count()
    audit.record(job.user, audit.SESSIONS_IMPORTED, "import", count=imported)


def _import_one(job: ChatImport, number: int, entry: archive.UploadedChat) -> None:
    """Import one chat, and save its result in the same transaction."""
    try:
        chat, conversation = _read(entry)
        title = rows.title_of(chat, conversation)
        result = ImportResult(
            chat_import=job,
            number=number,
            source=chat.agent,
            title=title,
            outcome=Outcome.KNOWN,
        )
        try:
            with transaction.atomic():
                # A cancellation waits for the current chat.
                if not claims.held(job).select_for_update().values_list("pk"):
                    raise claims.ClaimLost
                result.session = rows.save(job.user, chat, conversation)
                result.outcome = Outcome.IMPORTED
                result.save()
                return
        except rows.AlreadyImported as duplicate:
            result.session_id = duplicate.session
    except NotImportable as problem:
        result = _problem_result(job, number, entry, problem.problem)
    except claims.ClaimLost:
        raise
    except Exception:  # the others must not be lost with it
        logger.exception("Can't import chat %s of import %s.", number, job.pk)
        result = _problem_result(job, number, entry, Problem.UNEXPECTED)
    result.save()


def _read(entry: archive.UploadedChat) -> tuple[SourceChat, trees.Conversation]:
    if entry.chat is None:
        raise entry.problem or NotImportable(Problem.BROKEN)
    conversation = trees.build(entry.chat, timezone.now())
    # Retention would delete it at once.
    days = configured.RUN_RETENTION_DAYS.value
    if days and rows.last_used(conversation) < timezone.now() - timedelta(days=days):
        raise NotImportable(Problem.OLD)
    return entry.chat, conversation


def _problem_result(
    job: ChatImport, number: int, entry: archive.UploadedChat, problem: Problem
) -> ImportResult:
    skipped = {Problem.EMPTY, Problem.OLD, Problem.NOT_A_CHAT, Problem.NO_CHATS}
    return ImportResult(
        chat_import=job,
        number=number,
        outcome=Outcome.SKIPPED if problem in skipped else Outcome.FAILED,
        source=entry.chat.agent if entry.chat else "",
        title=rows.title_of(entry.chat) if entry.chat else "",
        file=sanitize_text(entry.file)[:MAX_NAME_CHARS],
        problem=problem.value,
    )


def _chats(job: ChatImport) -> Iterator[archive.UploadedChat]:
    """Yield the chats, with a heartbeat every few seconds; raise ClaimLost."""
    due = time.monotonic() + HEARTBEAT_SECONDS
    count = 0
    for count, entry in enumerate(archive.chats(storage.paths(job)), start=1):
        if jobs.stopping.is_set():
            raise _ShuttingDown
        yield entry
        if time.monotonic() >= due or count % 20 == 0:
            due = time.monotonic() + HEARTBEAT_SECONDS
            claims.renew(job, done=count)
    claims.renew(job, done=count)


def _end(job: ChatImport, status: str, problem: Problem | None = None) -> None:
    ChatImport.objects.active().filter(pk=job.pk).update(
        status=status,
        problem=problem.value if problem else "",
        ended_at=timezone.now(),
        **claims.NO_LEASE,
    )
    storage.delete(job.pk)
