"""Saves memories: without duplicates, and with the history of what they replaced."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.installation import configured
from agents.models import Memory, Run
from agents.models.memory import MemoryQuerySet

from . import texts
from .errors import MemoryRejected
from .policy import MemoryScope

MAX_PROPOSALS = 50
UNDO = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What to remember, and where it comes from."""

    text: str
    subject: str = ""
    kind: Memory.Kind = Memory.Kind.FACT
    source: Memory.Source = Memory.Source.PAGE
    run: Run | None = None
    step: int | None = None
    reason: str = ""  # why it waits for the user; empty if it is saved at once


def save(scope: MemoryScope, new: NewMemory) -> Memory:
    """Save a memory, or return the one with the same text; raise MemoryRejected."""
    text = texts.check(new.text, is_own=new.source != Memory.Source.AGENT)
    status = Memory.Status.PROPOSED if new.reason else Memory.Status.ACTIVE
    memory = Memory(
        user_id=scope.user,
        project_id=scope.project,
        text=text,
        digest=texts.digest(text),
        subject=texts.normalize_subject(new.subject),
        kind=new.kind,
        status=status,
        source=new.source,
        run=new.run,
        step=new.step,
        reason=new.reason[:200],
    )
    try:
        with transaction.atomic():
            return _insert(scope, memory)
    except IntegrityError:  # another process has just saved it
        return _same(scope, memory.digest).get()


def _insert(scope: MemoryScope, memory: Memory) -> Memory:
    known = _same(scope, memory.digest).first()
    if known is not None:
        if known.status == Memory.Status.PROPOSED and memory.status == Memory.Status.ACTIVE:
            return accept(known)
        return known
    _check_room(scope, memory.status)
    memory.save(force_insert=True)
    if memory.status == Memory.Status.ACTIVE:
        _supersede(memory)
    return memory


def of_scope(scope: MemoryScope) -> MemoryQuerySet:
    """Return the memories of a user or of a project, not both."""
    if scope.project is not None:
        return Memory.objects.filter(project=scope.project)
    return Memory.objects.filter(user=scope.user, project=None)


def _same(scope: MemoryScope, digest: str) -> MemoryQuerySet:
    return of_scope(scope).present().filter(digest=digest, valid_to=None)


def _check_room(scope: MemoryScope, status: str) -> None:
    is_proposal = status == Memory.Status.PROPOSED
    most = MAX_PROPOSALS if is_proposal else configured.MAX_MEMORIES.value
    if of_scope(scope).present().filter(status=status, valid_to=None).count() >= most:
        sentence = _("The memory is full (%(most)d entries). Delete some first.")
        raise MemoryRejected(sentence % {"most": most})


def _supersede(memory: Memory) -> None:
    """End the validity of what this memory replaces: the same subject, another text."""
    if not memory.subject:
        return
    scope = MemoryScope(user=memory.user_id, project=memory.project_id)
    replaced = of_scope(scope).current().filter(subject=memory.subject).exclude(pk=memory.pk)
    replaced.update(valid_to=memory.valid_from, superseded_by=memory)


@transaction.atomic
def accept(memory: Memory) -> Memory:
    """Turn a suggestion into a memory."""
    memory.status, memory.reason = Memory.Status.ACTIVE, ""
    memory.valid_from = timezone.now()
    memory.save(update_fields=["status", "reason", "valid_from", "updated_at"])
    _supersede(memory)
    return memory


@transaction.atomic
def edit(memory: Memory, text: str, subject: str, kind: str) -> Memory:
    """Save another text as a new version; the old one stays in the history.

    Raises MemoryRejected.
    """
    cleaned = texts.check(text, is_own=True)
    digest = texts.digest(cleaned)
    scope = MemoryScope(user=memory.user_id, project=memory.project_id)
    if _same(scope, digest).exclude(pk=memory.pk).exists():
        raise MemoryRejected(_("This is already in the memory."))
    about = {"subject": texts.normalize_subject(subject), "kind": Memory.Kind(kind)}
    if digest == memory.digest or not memory.is_current:
        return _change(memory, text=cleaned, digest=digest, **about)
    now = timezone.now()
    Memory.objects.filter(pk=memory.pk).update(valid_to=now)
    new = Memory.objects.create(
        user_id=memory.user_id,
        project_id=memory.project_id,
        text=cleaned,
        digest=digest,
        source=Memory.Source.PAGE,
        valid_from=now,
        **about,
    )
    Memory.objects.filter(pk=memory.pk).update(superseded_by=new)
    _supersede(new)
    return new


def _change(memory: Memory, **columns: str) -> Memory:
    for name, value in columns.items():
        setattr(memory, name, value)
    memory.vector, memory.vector_model = None, ""
    memory.save()
    return memory


@transaction.atomic
def delete(memory: Memory) -> None:
    """Delete a memory, which can be restored for a while; then it is erased."""
    purge_deleted()
    Memory.objects.filter(pk=memory.pk).update(deleted_at=timezone.now())


@transaction.atomic
def restore(memory: Memory) -> None:
    """Restore a deleted memory, unless the same has been saved since."""
    scope = MemoryScope(user=memory.user_id, project=memory.project_id)
    if memory.valid_to is None and _same(scope, memory.digest).exists():
        return
    Memory.objects.filter(pk=memory.pk).update(deleted_at=None)


@transaction.atomic
def undo(memory: Memory) -> None:
    """Take back what was just saved: delete it, and restore what it replaced."""
    restored = Memory.objects.present().filter(superseded_by=memory)
    for old in restored:
        scope = MemoryScope(user=old.user_id, project=old.project_id)
        if not _same(scope, old.digest).exists():
            Memory.objects.filter(pk=old.pk).update(valid_to=None, superseded_by=None)
    delete(memory)


def history(memory: Memory) -> list[Memory]:
    """Return what this memory replaced, the newest first."""
    found: list[Memory] = []
    waiting = [memory.pk]
    while waiting and len(found) < configured.MAX_MEMORIES.value:
        older = list(Memory.objects.present().filter(superseded_by__in=waiting))
        waiting = [row.pk for row in older if row not in found]
        found += [row for row in older if row not in found]
    return sorted(found, key=lambda row: row.valid_from, reverse=True)


def purge_deleted() -> int:
    """Erase memories whose deletion can no longer be undone."""
    gone = Memory.objects.filter(deleted_at__lt=timezone.now() - UNDO)
    return gone.delete()[0]


def search(rows: QuerySet[Memory], query: str) -> QuerySet[Memory]:
    """Return the memories with all of these words."""
    for word in query.split()[:8]:
        rows = rows.filter(Q(text__icontains=word) | Q(subject__icontains=word))
    return rows


def save_vectors(vectors: Iterable[tuple[int, bytes]], model: str) -> None:
    """Save vectors that were computed when the memories were needed."""
    for pk, vector in vectors:
        Memory.objects.filter(pk=pk).update(vector=vector, vector_model=model)
