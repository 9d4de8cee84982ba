"""A run as a file."""

from collections.abc import AsyncIterator, Iterator

from channels.db import database_sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils import translation
from django.views.decorators.http import require_GET

from agents import audit, masking
from agents.review import exports
from agents.review.reading import Reading, read

AT_ONCE = 64 * 1024


@require_GET
async def export_json(request: HttpRequest, pk: int) -> HttpResponse:
    found = await database_sync_to_async(_read)(request, pk, "json")
    pieces = exports.as_json(found.row, is_masked=found.is_masked)
    return _file(pieces, f"trace-{pk}.json", "application/json")


@require_GET
async def export_markdown(request: HttpRequest, pk: int) -> HttpResponse:
    found = await database_sync_to_async(_read)(request, pk, "markdown")
    pieces = exports.as_markdown(found.row, is_masked=found.is_masked)
    return _file(pieces, f"trace-{pk}.md", "text/markdown; charset=utf-8")


def _read(request: HttpRequest, pk: int, form: str) -> Reading:
    found = read(request, pk, "export")
    if not masking.is_own(found.row, request.user):
        audit.record(request.user, audit.EXPORTED, found.row, form=form)
    return found


def _file(pieces: Iterator[str], name: str, type: str) -> StreamingHttpResponse:
    told = _in_turn(pieces, translation.get_language())
    response = StreamingHttpResponse(told, content_type=type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


async def _in_turn(pieces: Iterator[str], language: str) -> AsyncIterator[str]:
    """Each piece is made where rows are read, while the server does other things."""
    while piece := await database_sync_to_async(_next)(pieces, language):
        yield piece


def _next(pieces: Iterator[str], language: str) -> str:
    """As much as is worth a message."""
    taken, size = [], 0
    with translation.override(language):
        for piece in pieces:
            taken.append(piece)
            size += len(piece)
            if size >= AT_ONCE:
                break
    return "".join(taken)
