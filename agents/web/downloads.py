"""Files to download: streamed, because they may be too large for memory, and rows of CSV."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Iterator
from decimal import Decimal

from django.http import StreamingHttpResponse
from django.utils import translation

from agents.db import database
from agents.engine.text import FORMULA

CHUNK_BYTES = 64 * 1024


def download(pieces: Iterator[str | bytes], name: str, type: str) -> StreamingHttpResponse:
    stream = _stream(pieces, translation.get_language())
    response = StreamingHttpResponse(stream, content_type=type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def csv_line(cells: Iterable[object]) -> str:
    """Return a row of a CSV file, in which a spreadsheet runs no text as a formula."""
    values: list[object] = []
    for cell in cells:
        if cell is None or isinstance(cell, int | float | Decimal):
            values.append(cell)
        else:
            text = str(cell)
            values.append(f"'{text}" if FORMULA.match(text) else text)
    buffer = io.StringIO()
    csv.writer(buffer).writerow(values)
    return buffer.getvalue()


async def _stream(pieces: Iterator[str | bytes], language: str) -> AsyncIterator[bytes]:
    """Create each piece on the database thread, without blocking the event loop."""
    while piece := await database.run(_next_chunk, pieces, language):
        yield piece


def _next_chunk(pieces: Iterator[str | bytes], language: str) -> bytes:
    """Return the next chunk, of a size worth sending."""
    chunk = bytearray()
    with translation.override(language):
        for piece in pieces:
            chunk += piece.encode() if isinstance(piece, str) else piece
            if len(chunk) >= CHUNK_BYTES:
                break
    return bytes(chunk)
