"""Run exports."""

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from agents.access import audit, masking
from agents.access.requests import UserRequest
from agents.db import database
from agents.review import exports
from agents.review.run_details.audited_reading import ReadableRun, open_run
from agents.web.downloads import download


@require_GET
async def export_json(request: UserRequest, pk: int) -> HttpResponseBase:
    readable = await database.run(_open_for_export, request, pk, "json")
    pieces = exports.as_json(
        readable.row,
        is_masked=readable.is_masked,
        hides_private=readable.hides_private,
        hides_rules=readable.hides_rules,
        reviewer=request.user,
    )
    return download(pieces, f"trace-{pk}.json", "application/json")


@require_GET
async def export_markdown(request: UserRequest, pk: int) -> HttpResponseBase:
    readable = await database.run(_open_for_export, request, pk, "markdown")
    pieces = exports.as_markdown(
        readable.row, is_masked=readable.is_masked, hides_private=readable.hides_private
    )
    return download(pieces, f"trace-{pk}.md", "text/markdown; charset=utf-8")


def _open_for_export(request: UserRequest, pk: int, file_format: str) -> ReadableRun:
    readable = open_run(request, pk, "export")
    if not masking.is_own(readable.row, request.user):
        audit.record(request.user, audit.EXPORTED, readable.row, form=file_format)
    return readable
