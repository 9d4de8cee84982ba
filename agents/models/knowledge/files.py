"""Files that users upload and documents are made from: each content is stored once."""

from typing import Any

from django.core.files.base import File
from django.core.files.storage import storages
from django.db import models
from django.utils.translation import gettext_lazy as _


class StoredFile(models.Model):
    """A file's content, known by its digest. Rows that need it refer to it.

    The bytes are in the storage `files`. Only the server knows this row: who can read a file is
    decided by the rows that refer to it.
    """

    digest = models.CharField(_("digest"), max_length=64, unique=True)
    size = models.PositiveBigIntegerField(_("size (bytes)"))
    mime_type = models.CharField(
        _("type"), max_length=130, help_text=_("Read from the content, not from the name.")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("stored file")
        verbose_name_plural = _("stored files")
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.digest[:12]

    @property
    def path(self) -> str:
        """Where its bytes are in the storage."""
        return f"{self.digest[:2]}/{self.digest}"

    def open(self) -> "File[Any]":
        """Open its bytes for reading."""
        return storages["files"].open(self.path, "rb")
