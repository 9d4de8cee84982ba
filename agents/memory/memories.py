"""Memories: without duplicates, and with the history of what they replaced."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access.recently_deleted import CannotRestore
from agents.db.installation import configured
from agents.models import Memory

from . import statements, store, texts
from .errors import NoteRejected

MAX_PROPOSALS = 50


@transaction.atomic
def save(memory: Memory) -> Memory:
    """Save a new memory, or return the one with the same text; raise NoteRejected.

    With a reason it waits for the user's decision.
    """
    memory.text = texts.check_memory(memory.text, is_own=memory.source != Memory.Source.AGENT)
    memory.digest = texts.digest(memory.text)
    memory.subject = texts.normalize_subject(memory.subject)
    memory.reason = memory.reason[:200]
    is_proposal = bool(memory.reason)
    memory.status = Memory.Status.PROPOSED if is_proposal else Memory.Status.ACTIVE
    saved = memory.same().first()
    if saved is None:
        _check_room(memory)
        saved = store.insert(memory)
    if is_proposal:
        return saved
    if saved.status == Memory.Status.PROPOSED:
        return accept(saved)
    if saved is memory:
        _supersede(memory)
    return saved


def _check_room(memory: Memory) -> None:
    is_proposal = memory.status == Memory.Status.PROPOSED
    limit = MAX_PROPOSALS if is_proposal else configured.MAX_MEMORIES.value
    saved = memory.siblings.present().filter(status=memory.status, valid_to=None)
    if saved.count() >= limit:
        sentence = _("The memory is full (%(most)d entries). Delete some first.")
        raise NoteRejected(sentence % {"most": limit})


def _supersede(memory: Memory) -> None:
    """End the validity of what this memory makes wrong."""
    if memory.subject:
        same_subject = memory.siblings.current().filter(subject=memory.subject)
        replaced = [
            old.pk
            for old in same_subject.exclude(pk=memory.pk)
            if statements.replaces(memory.text, old.text, memory.subject)
        ]
        Memory.objects.filter(pk__in=replaced).update(
            valid_to=memory.valid_from, superseded_by=memory
        )


@transaction.atomic
def accept(memory: Memory) -> Memory:
    """Turn a suggestion into a memory."""
    memory.status = Memory.Status.ACTIVE
    memory.reason = ""
    memory.valid_from = timezone.now()
    memory.save(update_fields=["status", "reason", "valid_from", "updated_at"])
    _supersede(memory)
    return memory


@transaction.atomic
def edit(memory: Memory, text: str, subject: str, kind: str) -> Memory:
    """Save another text as a new version; the old one stays in the history.

    Raises NoteRejected.
    """
    is_current = memory.is_current
    new = Memory(
        user_id=memory.user_id,
        project_id=memory.project_id,
        text=texts.check_memory(text, is_own=True),
        subject=texts.normalize_subject(subject),
        kind=Memory.Kind(kind),
    )
    new.digest = texts.digest(new.text)
    if new.same().exclude(pk=memory.pk).exists():
        raise NoteRejected(_("This is already in the memory."))
    if new.digest == memory.digest or not is_current:
        for name in ("text", "digest", "subject", "kind"):
            setattr(memory, name, getattr(new, name))
        memory.vector = None
        memory.vector_model = ""
        memory.save()
        return memory
    Memory.objects.filter(pk=memory.pk).update(valid_to=new.valid_from)
    new.save(force_insert=True)
    Memory.objects.filter(pk=memory.pk).update(superseded_by=new)
    _supersede(new)
    return new


@transaction.atomic
def restore(memory: Memory) -> None:
    """Restore a deleted memory; raise CannotRestore if something replaces it now."""
    newer = memory.siblings.current().filter(valid_from__gt=memory.valid_from)
    same_subject = newer.filter(subject=memory.subject) if memory.subject else newer.none()
    for replacement in same_subject:
        if not statements.replaces(replacement.text, memory.text, memory.subject):
            continue
        sentence = _("“%(text)s” has replaced this memory. Delete that one first.")
        raise CannotRestore(sentence % {"text": replacement.text})
    try:
        _check_room(memory)
    except NoteRejected as error:
        raise CannotRestore(str(error)) from error
    store.restore(memory)
    if memory.is_current:
        _supersede(memory)


@transaction.atomic
def undo(memory: Memory, user: User | None = None) -> None:
    """Take back what was just saved: delete it, and restore what it replaced."""
    for replaced in Memory.objects.present().filter(superseded_by=memory):
        replaced.valid_to = None
        if not replaced.same().exists():
            Memory.objects.filter(pk=replaced.pk).update(valid_to=None, superseded_by=None)
    store.delete(memory, user)


def history(memory: Memory) -> list[Memory]:
    """Return what this memory replaced, the newest first."""
    replaced: list[Memory] = []
    newer_pks = [memory.pk]
    while newer_pks and len(replaced) < configured.MAX_MEMORIES.value:
        older = Memory.objects.present().filter(superseded_by__in=newer_pks)
        new = [row for row in older if row not in replaced]
        newer_pks = [row.pk for row in new]
        replaced += new
    return sorted(replaced, key=lambda row: row.valid_from, reverse=True)
