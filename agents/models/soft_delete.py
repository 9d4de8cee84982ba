"""Rows that are only hidden when they are deleted, so that they can be restored."""

from typing import Self, TypeVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

Row = TypeVar("Row", bound=models.Model, covariant=True)


class SoftDeleteQuerySet(models.QuerySet[Row]):
    def present(self) -> Self:
        """Leave out deleted rows."""
        return self.filter(deleted_at=None)


class SoftDelete(models.Model):
    """A row that is invisible from `deleted_at` on, until `recently_deleted` erases it."""

    deleted_at = models.DateTimeField(
        _("deleted"), null=True, blank=True, editable=False, db_index=True
    )
    deleted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("deleted by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )

    class Meta:
        abstract = True
