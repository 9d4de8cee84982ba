"""The text of a document in parts: what parsers return and the index takes."""

from dataclasses import dataclass

from agents.models import DocumentPart


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPart:
    """A page, slide, sheet or chapter, or the whole text, as Markdown."""

    text: str
    number: int = 1
    kind: str = DocumentPart.Kind.TEXT
    label: str = ""
    is_recognized: bool = False
