"""Files that tools returned in runs, and images that users attached to the question."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..knowledge.files import StoredFile
from .runs import Run

EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
}


class RunAttachment(models.Model):
    """An image, a sound or a file of a run; steps and events refer to it by its digest.

    It belongs to one run and is deleted with it. A rerun has its own row with the same file.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attachments")
    digest = models.CharField(_("digest"), max_length=64)
    mime_type = models.CharField(_("type"), max_length=130)
    name = models.CharField(_("name"), max_length=100, blank=True)
    size = models.PositiveIntegerField(_("size (bytes)"))
    file = models.ForeignKey(
        StoredFile,
        verbose_name=_("file"),
        on_delete=models.PROTECT,
        related_name="run_attachments",
    )
    text = models.TextField(
        _("text"),
        blank=True,
        default="",
        db_default="",
        help_text=_("Text read from the image or recording, if any."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("attachment")
        verbose_name_plural = _("attachments")
        ordering = ["run_id", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "digest"], name="one_attachment_a_digest")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.name or self.digest[:12]}"

    @contextmanager
    def open(self) -> Iterator[IO[Any]]:
        """Open its bytes for reading."""
        with self.file.open() as content:
            yield content

    @property
    def extension(self) -> str:
        """The ending of a file without a name."""
        return EXTENSIONS.get(self.mime_type, "bin")
