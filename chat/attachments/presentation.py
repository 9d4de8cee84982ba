"""A file as a page displays it: a chip in the composer, or a card in a message."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Sum
from django.db.models.functions import Length
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.catalog.attachments.file_context import WHOLE_TOKENS, estimate_tokens
from agents.db.sentences import translate
from agents.engine.attachments import format_size
from agents.knowledge.files.serving import INLINE_TYPES
from agents.models import Document
from chat.models import Attachment

MAX_THUMBNAIL_HEIGHT = 200
ICONS = {"image": "image", "audio": "audio", "video": "video", "table": "table"}


@dataclass(frozen=True)
class FileView:
    """An attachment with its address, size and progress."""

    row: Attachment

    @property
    def url(self) -> str:
        return reverse("chat:file", args=[self.row.pk])

    @property
    def document_url(self) -> str:
        """Return the address of its text, if it has one."""
        pk = self.row.document_id
        return reverse("library:document", args=[pk]) if pk is not None else ""

    @property
    def player(self) -> str:
        """Return the element that plays it: `audio`, `video`, or nothing."""
        is_playable = self.row.mime_type in INLINE_TYPES
        return self.row.kind if is_playable and self.row.kind in {"audio", "video"} else ""

    @property
    def transcript(self) -> str:
        """Return the address of a recording's transcript, if it has one."""
        document = self.row.document
        is_read = document is not None and document.indexed_at is not None
        is_recording = self.row.kind in {"audio", "video"}
        if not is_read or not is_recording:
            return ""
        return reverse("library:transcript", args=[self.row.document_id])

    @property
    def thumbnail(self) -> str:
        return f"{self.url}?size=thumbnail" if self.row.is_image else ""

    @property
    def thumbnail_size(self) -> tuple[int, int] | None:
        width = self.row.width
        height = self.row.height
        if not width or not height:
            return None
        scale = min(1, MAX_THUMBNAIL_HEIGHT / height)
        return max(1, round(width * scale)), max(1, round(height * scale))

    @property
    def size(self) -> str:
        return format_size(self.row.file.size)

    @property
    def icon(self) -> str:
        return ICONS.get(self.row.kind, "document")

    @property
    def state(self) -> str:
        """Return `ready`, `reading` or `failed`."""
        document = self.row.document
        if document is None or document.status == Document.Status.READY:
            return "ready"
        if self.row.is_image and not document.is_pending:
            return "ready"  # it is sent, also if nothing can be read in it
        return "reading" if document.is_pending else "failed"

    @property
    def note(self) -> str:
        """Return what a model gets of it, or why it gets nothing."""
        document = self.row.document
        if document is None:
            return ""
        if document.is_pending:
            if self.progress is None:
                return _("Reading…")
            return _("Reading… %(percent)d%%") % {"percent": self.progress}
        if document.status != Document.Status.READY:
            return translate(document.problem) or _("This file can't be read.")
        if self.row.is_image:
            return _("Text recognized")
        if self.row.kind == Attachment.Kind.TABLE:
            return _("Can be queried")
        return "" if self.can_choose else self.sent_as_label

    @property
    def progress(self) -> int | None:
        """Return how much of it is read in percent, if that is known."""
        document = self.row.document
        if document is None or not document.is_pending or not document.total:
            return None
        return min(99, round(100 * document.done / document.total))

    @property
    def pages(self) -> str:
        count = self.row.document.pages if self.row.document else None
        if not count:
            return ""
        return ngettext("%(count)d page", "%(count)d pages", count) % {"count": count}

    @property
    def can_choose(self) -> bool:
        """Whether its text can be sent whole or be searched."""
        document = self.row.document
        is_read = document is not None and document.status == Document.Status.READY
        return is_read and not self.row.is_image

    @property
    def choice_url(self) -> str:
        return reverse("chat:choose_reading", args=[self.row.pk])

    @property
    def sent_as(self) -> str:
        """Return `whole` or `searchable`: chosen, or by its size."""
        document = self.row.document
        if document is None or document.sent_as:
            return document.sent_as if document else ""
        fits = self.tokens <= WHOLE_TOKENS
        return Document.SentAs.WHOLE if fits else Document.SentAs.SEARCHABLE

    @property
    def sent_as_label(self) -> str:
        return str(Document.SentAs(self.sent_as).label)

    @property
    def reason(self) -> str:
        """Return the size that the choice depends on, and what it means."""
        if self.row.document is not None and self.row.document.sent_as:
            sentence = _("About %(tokens)s tokens. Chosen manually.")
        elif self.tokens <= WHOLE_TOKENS:
            sentence = _(
                "About %(tokens)s tokens. Files of up to %(most)s tokens are sent in full."
            )
        else:
            sentence = _(
                "About %(tokens)s tokens. Files of more than %(most)s tokens are "
                "searched instead."
            )
        return sentence % {"tokens": f"{self.tokens:,}", "most": f"{WHOLE_TOKENS:,}"}

    @cached_property
    def tokens(self) -> int:
        """The estimated tokens of its text."""
        document = self.row.document
        if document is None:
            return 0
        total = document.parts.aggregate(sum=Sum(Length("text")))["sum"] or 0
        return estimate_tokens(total, document.language)

    def to_json(self) -> dict[str, Any]:
        choice = {"sentAs": self.sent_as, "reason": self.reason} if self.can_choose else {}
        return {
            "id": self.row.pk,
            "name": self.row.name,
            "kind": self.row.kind,
            "icon": self.icon,
            "size": self.size,
            "url": self.url,
            "thumbnail": self.thumbnail,
            "state": self.state,
            "note": self.note,
            "progress": self.progress,
            **choice,
        }
