"""Receives files for a composer: checked, scaled, stored once, and read in the background."""

from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import PurePath
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import file_types
from agents.db.installation import configured
from agents.db.sanitize import sanitize_text
from agents.engine.tool import IMAGE_TYPES
from agents.knowledge.files import FileRefused, images, store
from agents.knowledge.files.images import ScaledImage
from agents.metering import budgets
from chat.models import Attachment

from . import reading

Kind = Attachment.Kind

MAX_UNSENT = 40
MAX_PER_MINUTE = 60
MAX_NAME_CHARS = 200
UNSENT_DAYS = 7
TABLE_TYPES = {
    "text/csv",
    "text/tab-separated-values",
    file_types.XLSX,
    "application/vnd.oasis.opendocument.spreadsheet",
}
# Nothing in these can be read without unpacking or running it.
UNREADABLE_TYPES = {
    file_types.OTHER,
    file_types.SQLITE,
    file_types.PROGRAM,
    file_types.BMP,
    file_types.TIFF,
    *file_types.ARCHIVE_TYPES,
}


def receive(
    user: User,
    upload: "UploadedFile[Any]",
    *,
    reads_images: bool = False,
    is_private: bool = False,
) -> Attachment:
    """Save an uploaded file in this user's composer; raise FileRefused.

    `reads_images` is for models that don't see: the text in images is recognized. `is_private`
    is for agents that mask personal data: recordings aren't sent to other services.
    """
    name = clean_name(upload.name or "")
    unsent = Attachment.objects.unsent_by(user)
    if unsent.count() >= MAX_UNSENT:
        # The oldest make room: they belong to an abandoned composer.
        for old in unsent.order_by("pk")[:1]:
            old.delete()
    if budgets.count_last_minute(Attachment.objects.filter(user=user)) >= MAX_PER_MINUTE:
        raise FileRefused(
            _("You've uploaded %(most)d files in the last minute. Wait a moment.")
            % {"most": MAX_PER_MINUTE}
        )
    max_bytes = configured.ATTACHMENT_MB.value * 1_000_000
    with store.stage(upload, name=name, max_bytes=max_bytes) as staged:
        mime_type = file_types.refine(staged.mime_type, name)
        kind = kind_of(mime_type, name)
        is_image = kind == Kind.IMAGE
        scaling: AbstractContextManager[ScaledImage | None] = (
            images.scale(staged, name, owner=user.pk) if is_image else nullcontext()
        )
        with scaling as scaled, transaction.atomic():
            attachment = Attachment(user=user, name=name, mime_type=mime_type, kind=kind)
            if scaled is None:
                attachment.file = store.commit(staged, owner=user)
                attachment.save()
            else:
                attachment.file = store.commit(scaled.staged, owner=user)
                attachment.mime_type = scaled.staged.mime_type
                attachment.width = scaled.width
                attachment.height = scaled.height
                attachment.save()
                images.save_thumbnail(attachment.file, scaled.thumbnail)
            if scaled is None or reads_images:
                reading.start(attachment, is_private=is_private)
    return attachment


def remove(user: User, pk: int) -> bool:
    """Remove a file that wasn't sent; return whether there was one."""
    with transaction.atomic():
        attachment = (
            Attachment.objects.unsent_by(user).select_for_update().filter(pk=pk).first()
        )
        if attachment is None:
            return False
        attachment.delete()
    return True


def clean_name(name: str) -> str:
    """Return a name without folders and control characters, short enough to be displayed."""
    last = sanitize_text(name).replace("\\", "/").rsplit("/", 1)[-1]
    plain = "".join(c if c.isprintable() else " " for c in last)
    plain = " ".join(plain.split()).strip(". ") or _("file")
    ending = PurePath(plain).suffix[:20]
    return (
        plain if len(plain) <= MAX_NAME_CHARS else plain[: MAX_NAME_CHARS - 21] + "…" + ending
    )


def kind_of(mime_type: str, name: str) -> str:
    """Return the kind of a file; raise FileRefused if nothing in it can be read."""
    if mime_type in IMAGE_TYPES or mime_type in {"image/heic", "image/avif"}:
        return Kind.IMAGE
    if mime_type in UNREADABLE_TYPES:
        raise FileRefused(
            _(
                "%(name)s can't be read. Attach a document, a table, an image, "
                "a recording or a video."
            )
            % {"name": name}
        )
    if mime_type in TABLE_TYPES:
        return Kind.TABLE
    main_type = mime_type.partition("/")[0]
    return main_type if main_type in {Kind.AUDIO, Kind.VIDEO} else Kind.DOCUMENT


def delete_unsent() -> None:
    """Delete files that were uploaded a week ago and never sent."""
    oldest = timezone.now() - timedelta(days=UNSENT_DAYS)
    for old in Attachment.objects.filter(message=None, created_at__lt=oldest).iterator():
        old.delete()
