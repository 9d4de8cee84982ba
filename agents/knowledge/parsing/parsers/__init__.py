"""Turns a file's bytes into parts of Markdown text.

Everything here runs in a confined child process (see `parsing.process`), so it imports neither
Django nor the rest of the product, except `agents.file_types` and `agents.engine.sentences`.
"""

from dataclasses import replace
from importlib import import_module

from agents.engine.sentences import Sentence as _

from .sniffing import sniff
from .values import (
    NeedsConversion,
    NeedsRecognition,
    ParsedDocument,
    SourceFile,
    UnreadableDocument,
)

__all__ = ["NeedsConversion", "NeedsRecognition", "SourceFile", "UnreadableDocument", "parse"]

EMPTY = _("This file contains no text.")


def parse(source: SourceFile) -> ParsedDocument:
    """Parse a file of any supported format; raise UnreadableDocument."""
    if not source.data:
        raise UnreadableDocument(_("This file is empty."))
    # Imported only now: a child process parses one file.
    parser = import_module(f".{sniff(source).parser}", __name__)
    document: ParsedDocument = parser.parse(source)
    document.parts = [part for part in document.parts if part.text.strip()]
    if not document.parts:
        raise UnreadableDocument(document.why_empty or EMPTY)
    if len({part.number for part in document.parts}) < len(document.parts):
        document.parts = [
            replace(part, number=number) for number, part in enumerate(document.parts, start=1)
        ]
    document.title = document.title.strip() or source.stem
    return document
