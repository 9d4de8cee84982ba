"""Attachments of a step, for display."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.engine.attachments import AttachmentRef, format_size

from .markdown import reveal_invisible

MAX_THUMBNAIL_HEIGHT = 240
MAX_QUESTION_THUMBNAIL_HEIGHT = 144
# Smaller images are their own thumbnails.
MIN_SCALED_BYTES = 100_000


@dataclass(frozen=True)
class AttachmentView:
    """An image, a sound or a file that a tool returned."""

    max_thumbnail_height: ClassVar[int] = MAX_THUMBNAIL_HEIGHT

    ref: AttachmentRef | Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.ref.get("kind", "file"))

    @property
    def kind_label(self) -> str:
        return {"image": _("Image"), "audio": _("Audio")}.get(self.kind, _("File"))

    @property
    def label(self) -> str:
        return reveal_invisible(str(self.ref.get("name", ""))) or self.kind_label

    @property
    def about(self) -> str:
        """Type and size."""
        size = format_size(int(self.ref.get("size", 0)))
        return f"{self.ref.get('mime_type', '')} · {size}"

    @property
    def alt(self) -> str:
        return _("%(kind)s from the tool: %(name)s") % {
            "kind": self.kind_label,
            "name": self.ref.get("name") or self.about,
        }

    @property
    def path(self) -> str:
        """The path below the run's page; empty if it can't be opened."""
        digest = "" if self.problem else self.ref.get("digest", "")
        return f"attachments/{digest}/" if digest else ""

    @property
    def thumbnail_path(self) -> str:
        """The path of the small version that the page displays."""
        is_large = int(self.ref.get("size", 0)) >= MIN_SCALED_BYTES
        return f"{self.path}?size=thumbnail" if self.path and is_large else self.path

    @property
    def thumbnail_size(self) -> tuple[int, int] | None:
        """Width and height of the thumbnail, known before the image is loaded."""
        width = self.ref.get("width") or 0
        height = self.ref.get("height") or 0
        if not width or not height:
            return None
        scale = min(1, self.max_thumbnail_height / height)
        return max(1, round(width * scale)), max(1, round(height * scale))

    @property
    def problem(self) -> str:
        """Why it can't be opened, for the reader."""
        if self.ref.get("is_masked"):
            return _("masked because it may contain personal data")
        return translate(str(self.ref.get("problem", "")))


@dataclass(frozen=True)
class QuestionFileView(AttachmentView):
    """A file that the user attached to the question. The run only has images of them."""

    max_thumbnail_height: ClassVar[int] = MAX_QUESTION_THUMBNAIL_HEIGHT

    number: int = 0

    @property
    def text_path(self) -> str:
        """The path of the text that the model got, below the run's page."""
        return f"files/{self.number}/"

    @property
    def about(self) -> str:
        digest = str(self.ref.get("digest", ""))[:12]
        return f"{super().about} · SHA-256 {digest}" if digest else super().about

    @property
    def alt(self) -> str:
        return str(self.ref.get("name", "")) or self.kind_label

    @property
    def path(self) -> str:
        return super().path if self.kind == "image" else ""


def question_files(files: Iterable[Mapping[str, Any]]) -> list[QuestionFileView]:
    """Return the files of a run's question for display."""
    return [QuestionFileView(ref, number) for number, ref in enumerate(files, start=1)]
