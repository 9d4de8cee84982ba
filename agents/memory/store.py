"""Saves, deletes and restores notes: one mechanism for memories and experiences."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TypeVar

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import recently_deleted
from agents.access.recently_deleted import CannotRestore
from agents.models import Experience
from agents.models.memory.notes import Note

EXPIRED = timedelta(days=30)  # how long an expired experience is listed
NoteType = TypeVar("NoteType", bound=Note)


def insert(note: NoteType) -> NoteType:
    """Save a new note; return the same one if another process has just saved it."""
    try:
        with transaction.atomic():
            note.save(force_insert=True)
    except IntegrityError:
        return note.same().get()
    return note


def delete(note: Note, user: User | None = None) -> None:
    recently_deleted.mark(type(note)._default_manager.filter(pk=note.pk), user)


@transaction.atomic
def restore(note: Note) -> None:
    """Restore a deleted note; raise CannotRestore if the same has been saved since."""
    if note.same().exists():
        raise CannotRestore(_("This can't be restored: the same text has been saved since."))
    recently_deleted.unmark(note)


def delete_expired() -> None:
    """Delete experiences that expired long ago."""
    Experience.objects.filter(expires_at__lt=timezone.now() - EXPIRED).delete()


def save_vectors(vectors: Mapping[Note, bytes], model: str) -> None:
    """Save vectors that were computed when the notes were needed."""
    for note, vector in vectors.items():
        rows = type(note)._default_manager.filter(pk=note.pk)
        rows.update(vector=vector, vector_model=model)
