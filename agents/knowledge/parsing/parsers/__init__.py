"""Turns a file's bytes into parts of Markdown text.

Everything here runs in a confined child process (see `parsing.process`), so it imports neither
Django nor the rest of the product.
"""

from collections.abc import Callable
from dataclasses import replace

from . import delimited, docx, epub, html, image, mail, pdf, plain, pptx, spreadsheet
from .sniffing import Format, sniff
from .values import ParsedDocument, Source, UnreadableDocument

Parser = Callable[[Source], ParsedDocument]

PARSERS: dict[Format, Parser] = {
    Format.PDF: pdf.parse,
    Format.DOCX: docx.parse,
    Format.PPTX: pptx.parse,
    Format.SPREADSHEET: spreadsheet.parse,
    Format.DELIMITED: delimited.parse,
    Format.EPUB: epub.parse,
    Format.HTML: html.parse,
    Format.MAIL: mail.parse,
    Format.MARKDOWN: plain.parse_markdown,
    Format.TEXT: plain.parse,
    Format.IMAGE: image.parse,
}
EMPTY = "This file contains no text."


def parse(source: Source) -> ParsedDocument:
    """Parse a file of any supported format; raise UnreadableDocument."""
    if not source.data:
        raise UnreadableDocument("This file is empty.")
    document = PARSERS[sniff(source)](source)
    document.parts = [part for part in document.parts if part.text.strip()]
    if not document.parts:
        raise UnreadableDocument(document.why_empty or EMPTY)
    if len({part.number for part in document.parts}) < len(document.parts):
        document.parts = [
            replace(part, number=number) for number, part in enumerate(document.parts, start=1)
        ]
    document.title = document.title.strip() or source.stem
    return document
