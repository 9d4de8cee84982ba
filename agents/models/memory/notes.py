"""What memories and experiences have in common: words that agents get when they fit."""

from typing import Any, Self, TypeVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..soft_delete import SoftDelete, SoftDeleteQuerySet

NoteType = TypeVar("NoteType", bound="Note", covariant=True)


class NoteQuerySet(SoftDeleteQuerySet[NoteType]):
    def search(self, query: str) -> Self:
        """Return those with all of these words."""
        rows = self
        for word in query.split()[:8]:
            conditions = (models.Q((f"{name}__icontains", word)) for name in self.model.words)
            rows = rows.filter(models.Q(*conditions, _connector=models.Q.OR))
        return rows


class Note(SoftDelete):
    """A text that agents get again: a memory that a user stated, or an experience of a run."""

    words: tuple[str, ...]  # columns of words

    digest = models.CharField(_("digest"), max_length=64, editable=False)
    vector = models.BinaryField(_("vector"), null=True, blank=True, editable=False)
    vector_model = models.CharField(
        _("embedding model"), max_length=200, blank=True, editable=False
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        abstract = True

    @property
    def compared(self) -> str:
        """What is compared with a question, by words and by meaning."""
        return " ".join(getattr(self, name) for name in self.words)

    def same(self) -> models.QuerySet[Any]:
        """Return the others with the same words for the same people; there can be only one."""
        raise NotImplementedError
