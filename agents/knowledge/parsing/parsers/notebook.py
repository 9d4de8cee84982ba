"""Jupyter notebooks: text, code and what it printed."""

import json
from collections.abc import Iterator
from typing import Any

from . import html, markdown, plain
from .archive import DAMAGED
from .values import ParsedDocument, SourceFile, UnreadableDocument

MAX_OUTPUT_CHARS = 20_000
CELL_STEPS = 50


def parse(source: SourceFile) -> ParsedDocument:
    text, notes = plain.read(source)
    try:
        book = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableDocument(DAMAGED) from error
    if not isinstance(book, dict):
        raise UnreadableDocument(DAMAGED)
    worksheets = [sheet for sheet in _listed(book.get("worksheets")) if isinstance(sheet, dict)]
    cells = _listed(book.get("cells")) or [
        cell for sheet in worksheets for cell in _listed(sheet.get("cells"))
    ]
    metadata = book.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    language = str(info.get("name", ""))[:30] if isinstance(info, dict) else ""
    blocks: list[str] = []
    for cell in cells:
        source.work.spend(CELL_STEPS)
        if isinstance(cell, dict):
            blocks += _cell(cell, language or "python", source)
    body = markdown.join(blocks)
    title = next((line[2:] for line in body.split("\n") if line.startswith("# ")), "")
    return ParsedDocument(title=title, parts=markdown.parts(body), notes=notes)


def _cell(cell: dict[str, Any], language: str, source: SourceFile) -> Iterator[str]:
    kind = cell.get("cell_type")
    text = _text(cell.get("source") or cell.get("input"))
    if kind == "code":
        yield markdown.fenced(text, language)
        for output in _listed(cell.get("outputs")):
            if isinstance(output, dict):
                yield _output(output, source)
    elif kind == "heading":
        level = cell.get("level")
        yield markdown.heading(level if isinstance(level, int) else 1, text)
    else:
        yield text


def _output(output: dict[str, Any], source: SourceFile) -> str:
    """Return what a cell printed; a table as one, and no pictures."""
    data = output.get("data")
    formats = data if isinstance(data, dict) else output
    page = _text(formats.get("text/html"))
    if "<table" in page:
        return html.convert(page, source.work).text
    text = _text(formats.get("text/plain") or output.get("text"))
    return markdown.fenced(text[:MAX_OUTPUT_CHARS])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    lines = value if isinstance(value, list) else [value]
    return "".join(line for line in lines if isinstance(line, str))
