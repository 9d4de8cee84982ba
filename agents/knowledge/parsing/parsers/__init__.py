"""Turns a file's bytes into parts of Markdown text.

Everything here runs in a confined child process (see `parsing.process`), so it imports neither
Django nor the rest of the product, except `agents.file_types`.
"""

from dataclasses import replace
from importlib import import_module

from .sniffing import Format, sniff
from .values import NeedsRecognition, ParsedDocument, SourceFile, UnreadableDocument

__all__ = ["NeedsRecognition", "SourceFile", "UnreadableDocument", "parse"]

# Imported when needed: a child process parses one file.
PARSERS = {
    Format.PDF: "pdf",
    Format.DOCX: "docx",
    Format.PPTX: "pptx",
    Format.SPREADSHEET: "spreadsheet",
    Format.DELIMITED: "delimited",
    Format.EPUB: "epub",
    Format.HTML: "html",
    Format.MAIL: "mail",
    Format.MARKDOWN: "markdown_file",
    Format.TEXT: "plain",
    Format.IMAGE: "image",
}
EMPTY = "This file contains no text."


def parse(source: SourceFile) -> ParsedDocument:
    """Parse a file of any supported format; raise UnreadableDocument."""
    if not source.data:
        raise UnreadableDocument("This file is empty.")
    parser = import_module(f".{PARSERS[sniff(source)]}", __name__)
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
