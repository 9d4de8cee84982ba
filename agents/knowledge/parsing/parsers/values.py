"""What parsers take and return."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

from agents.engine.sentences import Sentence as _

Kind = Literal["text", "page", "slide", "sheet", "chapter", "clip"]
Progress = Callable[[int, int], None]

MAX_CHARS = 20_000_000
MAX_STEPS = 20_000_000  # of a microsecond or so
PROTECTED = _("This file is password-protected. Remove the password and upload it again.")
OLD_OFFICE = _(
    "This file is in an old Microsoft format. Save it as DOCX, PPTX or EML and try again."
)
TOO_COMPLEX = _("This file has too many elements to be read. Split it and upload the parts.")


class UnreadableDocument(ValueError):
    """Raised when a file can't be read as a document; its text is a sentence for the user."""


class NeedsConversion(UnreadableDocument):
    """Raised when a file must be converted by another program first."""

    def __init__(self, kind: str) -> None:
        super().__init__(OLD_OFFICE)
        self.kind = kind


class NeedsRecognition(Exception):
    """Raised when a file has images to read, and the caller didn't want that now."""


class WorkLimit:
    """How much work a file may cause, counted by what is in it before that is looked at."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Count steps; raise UnreadableDocument if there were too many."""
        self.left -= steps
        if self.left < 0:
            raise UnreadableDocument(TOO_COMPLEX)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPart:
    """A page, slide, sheet or chapter, or the whole text, as Markdown."""

    text: str
    number: int = 1
    kind: Kind = "text"
    label: str = ""
    is_recognized: bool = False
    certainty: int | None = None  # of text recognition, in percent


@dataclass(slots=True, kw_only=True)
class ParsedDocument:
    """A document's parts; `notes` are sentences about what is missing.

    `usage` is what models used to read it, such as one that transcribes. `links` are those of a
    web page, each with its text.
    """

    title: str = ""
    parts: list[ParsedPart] = field(default_factory=list)
    pages: int | None = None
    language: str = ""
    notes: list[str] = field(default_factory=list)
    why_empty: str = ""
    usage: list[dict[str, Any]] = field(default_factory=list)
    links: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to parse; `progress` takes what is done and the total."""

    data: bytes
    name: str
    mime_type: str = ""
    progress: Progress = lambda done, total: None
    depth: int = 0  # 1 for an attachment
    seconds: float = 600.0  # until the process is killed
    recognizes: bool = True  # whether text in images is read, which is slow
    work: WorkLimit = field(default_factory=WorkLimit)  # attachments share it

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name.replace("\\", "/")).suffix.lower()

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name.replace("\\", "/")).stem
