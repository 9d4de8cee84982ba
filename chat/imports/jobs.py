"""Imports in the background: count, then import, one chat per transaction.

A process that has the files claims the job and keeps it alive with heartbeats. If it dies,
another one with the files continues: what is imported already is found by its original id.
What a death means for the import is decided by `agents.db.jobs`.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import connections, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents import budgets
from agents.access import audit
from agents.db import database, jobs
from agents.db.compiled_queries import compiled_query
from agents.db.errors import is_disk_full
from agents.db.periodic import periodic
from agents.db.sanitize import sanitize_text
from agents.installation import configured
from agents.runs import leases
from chat.imports import archive, rows, storage, trees
from chat.imports.values import LimitExceeded, NotImportable, Problem, SourceChat
from chat.models import ChatImport, ImportResult

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
STALE_AFTER = timedelta(seconds=60)
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


class _Stopped(Exception):
    """Raised when the job was canceled, deleted or taken over."""


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
    job, replaced = _create(user, files)
    for waiting in replaced:
        cancel(waiting)
    try:
        storage.save(job.pk, files)
    except OSError as error:
        # The files first: a deleted row has no ID any more.
        storage.delete(job.pk)
        job.delete()
        raise ImportRejected("disk_full" if is_disk_full(error) else "not_saved") from error
    return job


@transaction.atomic
def _create(user: User, files: list[UploadedFile]) -> tuple[ChatImport, list[ChatImport]]:
    """Return a new import, and earlier uploads that were never confirmed, which it replaces."""
    budgets.lock_user(user)
    theirs = ChatImport.objects.for_user(user)
    if theirs.active().exists():
        raise ImportRejected("already_running")
    waiting = list(theirs.filter(status=Status.READY))
    names = [sanitize_text(file.name or "")[:MAX_NAME_CHARS] for file in files]
    job = ChatImport.objects.create(user=user, files=names, heartbeat_at=timezone.now())
    return job, waiting


@transaction.atomic
def confirm(job: ChatImport) -> bool:
    """Import what was counted; return False if that isn't possible any more."""
    budgets.lock_user(job.user)
    if ChatImport.objects.for_user(job.user).active().exists():
        return False
    ready = ChatImport.objects.filter(pk=job.pk, status=Status.READY, found__gt=0)
    now = timezone.now()
    reset_columns = {"owner": "", "attempts": 0, "done": 0, "heartbeat_at": now, "problem": ""}
    return ready.update(status=Status.RUNNING, **reset_columns) == 1


def cancel(job: ChatImport) -> None:
    """Stop an import; chats that are imported already stay."""
    live = ChatImport.objects.filter(pk=job.pk, status__in=(Status.READY, *ChatImport.ACTIVE))
    if live.update(status=Status.CANCELLED, ended_at=timezone.now()):
        storage.delete(job.pk)


def cancel_all(user: User) -> None:
    """Stop a user's imports and delete their files."""
    for job in ChatImport.objects.for_user(user):
        cancel(job)


def start(job: ChatImport) -> None:
    """Work on the import in a thread of this process."""
    name = f"import-{job.pk}"
    threading.Thread(target=_work_alone, args=[job.pk], name=name, daemon=True).start()


@periodic("imports", every=HEARTBEAT_SECONDS)
async def resume_abandoned() -> None:
    """Continue imports whose process has died."""
    for job in await database.run(find_abandoned, timezone.now()):
        start(job)


def find_abandoned(now: datetime) -> list[ChatImport]:
    """Return stale imports whose files are on this machine, and end those that can't go on."""
    found = []
    for job in _active_jobs():
        if job.heartbeat_at is not None and job.heartbeat_at >= now - STALE_AFTER:
            continue
        if storage.is_here(job):
            found.append(job)
        elif (job.heartbeat_at or job.created_at) < now - LOST_AFTER:
            _end(job, Status.FAILED, Problem.FILE_GONE)
    return found


@compiled_query
def _active_jobs() -> QuerySet[ChatImport]:
    return ChatImport.objects.active()


def delete_old(now: datetime) -> None:
    """Delete finished imports after a while, with their results, and files left behind."""
    unconfirmed = ChatImport.objects.filter(status=Status.READY)
    for job in unconfirmed.filter(created_at__lt=now - READY_FOR):
        cancel(job)
    ChatImport.objects.filter(ended_at__lt=now - KEPT_FOR).delete()
    storage.delete_unowned()


def _work_alone(pk: int) -> None:
    try:
        with jobs.in_hand():
            work(pk)
    finally:
        connections.close_all()


def work(pk: int) -> None:
    """Count or import, if no other process does."""
    if pk in _in_hand or jobs.stopping.is_set():
        return
    _in_hand.add(pk)
    try:
        now = timezone.now()
        is_free = Q(owner="") | Q(heartbeat_at__lt=now - STALE_AFTER)
        previous = ChatImport.objects.active().filter(is_free, pk=pk).first()
        if previous is None:
            return
        same = ChatImport.objects.active().filter(
            pk=pk, owner=previous.owner, heartbeat_at=previous.heartbeat_at
        )
        if not same.update(owner=leases.owner(), heartbeat_at=now):
            return
        job = ChatImport.objects.select_related("user").get(pk=pk)
        if jobs.take_over(KIND, pk, _progress(job), has_died=bool(previous.owner)):
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
    except _Stopped:
        return
    except _ShuttingDown:
        _give_back(job)
    except LimitExceeded as limit:
        _end(job, Status.FAILED, limit.problem)
    except Exception:  # it is tried again, up to MAX_ATTEMPTS times
        logger.exception("Can't complete chat import %s.", job.pk)
        if job.attempts + 1 >= MAX_ATTEMPTS:
            _end(job, Status.FAILED, Problem.UNEXPECTED)
        else:
            _own(job).update(owner="", heartbeat_at=timezone.now(), attempts=F("attempts") + 1)


def _work_isolated(job: ChatImport) -> None:
    """Work on a claimed import in a process of its own; end it if it ends that, too."""
    try:
        ended_by = jobs.isolate(KIND, job.pk, job.owner)
    except jobs.NotIsolated:
        _own(job).update(owner="", heartbeat_at=timezone.now())
        return
    if not ended_by:
        return
    if jobs.record_crash(KIND, job.pk, _progress(job)):
        _end(job, Status.FAILED, Problem.CRASHED)
    else:
        _give_back(job)


def work_claimed(pk: int, owner: str) -> None:
    """Work on an import in this process with the claim of another one, if it still holds."""
    mine = ChatImport.objects.active().filter(pk=pk, owner=owner)
    if (job := mine.select_related("user").first()) is not None:
        _work(job)


def _give_back(job: ChatImport) -> None:
    """Let any process continue at once."""
    _own(job).update(owner="", heartbeat_at=None)


def _progress(job: ChatImport) -> int:
    return job.results.filter(outcome=Outcome.IMPORTED).count()


def _count(job: ChatImport) -> None:
    """Read everything and save nothing but what would be imported."""
    sources: Counter[str] = Counter()
    new_count = 0
    results = []
    for number, found in enumerate(_chats(job), start=1):
        try:
            chat, _conversation = _read(found)
        except NotImportable as problem:
            results.append(_problem_result(job, number, found, problem.problem))
            continue
        sources[chat.agent] += 1
        new_count += rows.find_known(job.user, chat) is None
    with transaction.atomic():
        done = _own(job).update(
            status=Status.READY if sources else Status.FAILED,
            problem="" if sources else _why_nothing(results),
            sources=dict(sources.most_common()),
            found=sum(sources.values()),
            is_new=new_count,
            owner="",
            ended_at=None if sources else timezone.now(),
        )
        if not done:
            raise _Stopped
        ImportResult.objects.filter(chat_import=job.pk).delete()
        ImportResult.objects.bulk_create(results, 500)
    if not sources:
        storage.delete(job.pk)


def _why_nothing(results: list[ImportResult]) -> str:
    """Return the one reason why nothing was found, or that there are no chats."""
    problems = {result.problem for result in results}
    return problems.pop() if len(problems) == 1 else Problem.NO_CHATS.value


def _import(job: ChatImport) -> None:
    # After a crash it starts over: what was imported is now known.
    ImportResult.objects.filter(chat_import=job.pk).exclude(outcome=Outcome.IMPORTED).delete()
    known = dict(
        ImportResult.objects.filter(chat_import=job.pk).values_list("number", "outcome")
    )
    for number, found in enumerate(_chats(job), start=1):
        if number not in known:
            _import_one(job, number, found)
            time.sleep(PAUSE_SECONDS)
    _end(job, Status.DONE)
    imported = job.results.filter(outcome=Outcome.IMPORTED).count()
    audit.record(job.user, audit.SESSIONS_IMPORTED, "import", count=imported)


def _import_one(job: ChatImport, number: int, found: archive.Found) -> None:
    """Import one chat, and save its result in the same transaction."""
    try:
        chat, conversation = _read(found)
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
                _lock(job)
                result.session = rows.save(job.user, chat, conversation)
                result.outcome = Outcome.IMPORTED
                result.save()
                return
        except rows.AlreadyImported as known:
            result.session_id = known.session
    except NotImportable as problem:
        result = _problem_result(job, number, found, problem.problem)
    except _Stopped:
        raise
    except Exception:  # the others must not be lost with it
        logger.exception("Can't import chat %s of import %s.", number, job.pk)
        result = _problem_result(job, number, found, Problem.UNEXPECTED)
    result.save()


def _read(found: archive.Found) -> tuple[SourceChat, trees.Conversation]:
    if found.chat is None:
        raise found.problem or NotImportable(Problem.BROKEN)
    conversation = trees.build(found.chat, timezone.now())
    rows.check_age(conversation, _oldest())
    return found.chat, conversation


def _oldest() -> datetime | None:
    """Return since when chats are kept here, if that is limited."""
    days = configured.KEEP_RUNS_DAYS.value
    return timezone.now() - timedelta(days=days) if days else None


def _problem_result(
    job: ChatImport, number: int, found: archive.Found, problem: Problem
) -> ImportResult:
    skipped = {Problem.EMPTY, Problem.OLD, Problem.NOT_A_CHAT, Problem.NO_CHATS}
    return ImportResult(
        chat_import=job,
        number=number,
        outcome=Outcome.SKIPPED if problem in skipped else Outcome.FAILED,
        source=found.chat.agent if found.chat else "",
        title=rows.title_of(found.chat) if found.chat else "",
        file=sanitize_text(found.file)[:MAX_NAME_CHARS],
        problem=problem.value,
    )


def _chats(job: ChatImport) -> Iterator[archive.Found]:
    """Yield the chats, with a heartbeat every few seconds; raise _Stopped if it isn't ours."""
    due = time.monotonic() + HEARTBEAT_SECONDS
    yield from _with_heartbeats(job, archive.chats(storage.paths(job)), due)


def _with_heartbeats(
    job: ChatImport, found: Iterable[archive.Found], due: float
) -> Iterator[archive.Found]:
    count = 0
    for count, one in enumerate(found, start=1):
        if jobs.stopping.is_set():
            raise _ShuttingDown
        yield one
        if time.monotonic() >= due or count % 20 == 0:
            due = time.monotonic() + HEARTBEAT_SECONDS
            _beat(job, count)
    _beat(job, count)


def _beat(job: ChatImport, done: int) -> None:
    if not _own(job).update(heartbeat_at=timezone.now(), done=done):
        raise _Stopped


def _lock(job: ChatImport) -> None:
    """Let a cancellation wait for the current chat; raise _Stopped after that."""
    if not _own(job).select_for_update().values_list("pk"):
        raise _Stopped


def _own(job: ChatImport) -> QuerySet[ChatImport]:
    """Return the job's row while this process owns it."""
    return ChatImport.objects.active().filter(pk=job.pk, owner=job.owner)


def _end(job: ChatImport, status: str, problem: Problem | None = None) -> None:
    about = {"problem": problem.value if problem else "", "ended_at": timezone.now()}
    ChatImport.objects.active().filter(pk=job.pk).update(status=status, **about)
    storage.delete(job.pk)
