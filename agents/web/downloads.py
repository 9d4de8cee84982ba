"""Streams files that may be too large for memory."""

from collections.abc import AsyncIterator, Iterator

from django.http import StreamingHttpResponse
from django.utils import translation

from agents.db import database

CHUNK_BYTES = 64 * 1024


def download(pieces: Iterator[str | bytes], name: str, type: str) -> StreamingHttpResponse:
    stream = _stream(pieces, translation.get_language())
    response = StreamingHttpResponse(stream, content_type=type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


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
