"""Files that are made while they are sent, because they can be longer than should be held."""

from collections.abc import AsyncIterator, Iterator

from django.http import StreamingHttpResponse
from django.utils import translation

from agents.db import database

AT_ONCE = 64 * 1024


def download(pieces: Iterator[str | bytes], name: str, type: str) -> StreamingHttpResponse:
    told = _in_turn(pieces, translation.get_language())
    response = StreamingHttpResponse(told, content_type=type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


async def _in_turn(pieces: Iterator[str | bytes], language: str) -> AsyncIterator[bytes]:
    """Each piece is made where rows are read, while the server does other things."""
    while piece := await database.ask(_next, pieces, language):
        yield piece


def _next(pieces: Iterator[str | bytes], language: str) -> bytes:
    """As much as is worth a message."""
    taken = bytearray()
    with translation.override(language):
        for piece in pieces:
            taken += piece.encode() if isinstance(piece, str) else piece
            if len(taken) >= AT_ONCE:
                break
    return bytes(taken)
