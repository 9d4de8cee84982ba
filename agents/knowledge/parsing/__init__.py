"""Reads files of many formats as Markdown, in a confined child process."""

from .parsers.values import NeedsRecognition, ParsedDocument, ParsedPart, UnreadableDocument
from .process import DEADLINE_SECONDS, MAX_FILE_BYTES, parse

__all__ = [
    "DEADLINE_SECONDS",
    "MAX_FILE_BYTES",
    "NeedsRecognition",
    "ParsedDocument",
    "ParsedPart",
    "UnreadableDocument",
    "parse",
]
