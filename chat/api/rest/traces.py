"""Traces to download: one run, or all that match a filter as JSON lines."""

from collections.abc import Iterator
from typing import Literal

from django.http import StreamingHttpResponse
from ninja import Query, Router

from agents.access import audit, masking
from agents.models import Run
from agents.review import exports
from agents.web.downloads import download
from chat.api.calls import Caller

from .access import READ, RestRequest
from .reading import Reader, open_run
from .runs import RunQuery, find_runs
from .schemas import produces

router = Router(tags=["Runs"], exclude_none=True)

JSON_LINES = "application/jsonl"
CURSOR_HEADER = "Next-Cursor"


@router.get(
    "/runs/{int:run_id}/trace.{ending}",
    auth=READ,
    operation_id="exportTrace",
    summary="Export a trace",
    openapi_extra=produces("application/json", "text/markdown"),
)
def export_trace(
    request: RestRequest, run_id: int, ending: Literal["json", "md"]
) -> StreamingHttpResponse:
    """As JSON (docs/trace-schema.md) or Markdown; runs of others are masked."""
    run, reader = open_run(request.auth, run_id)
    _record(request.auth, run, ending)
    if ending == "json":
        pieces = _trace(request.auth, run, reader)
        return download(pieces, f"trace-{run_id}.json", "application/json")
    pieces = exports.as_markdown(
        run, is_masked=reader.is_masked, hides_private=reader.hides_private
    )
    return download(pieces, f"trace-{run_id}.md", "text/markdown; charset=utf-8")


@router.get(
    "/traces",
    auth=READ,
    operation_id="exportTraces",
    summary="Export traces",
    openapi_extra={
        "responses": {
            200: {
                "content": {JSON_LINES: {"schema": {"type": "string"}}},
                "headers": {
                    CURSOR_HEADER: {
                        "description": "The cursor of the next page; absent on the last one.",
                        "schema": {"type": "string"},
                    }
                },
            }
        }
    },
)
def export_traces(request: RestRequest, query: Query[RunQuery]) -> StreamingHttpResponse:
    """A page of `listRuns` with the whole trace of each run (docs/trace-schema.md) per line."""
    pks, cursor = find_runs(request.auth, query)
    runs = Run.objects.in_bulk(pks)
    found = masking.load_origins(runs[pk] for pk in pks if pk in runs)
    for run in found:
        audit.record_view(request.auth.user, run, "export")
        _record(request.auth, run, "jsonl")
    response = download(_lines(request.auth, found), "traces.jsonl", JSON_LINES)
    if cursor is not None:
        response[CURSOR_HEADER] = cursor
    return response


def _lines(caller: Caller, runs: list[Run]) -> Iterator[str]:
    for run in runs:
        for piece in _trace(caller, run, Reader.of(run, caller.user)):
            yield piece.replace("\n", "")  # those within texts are escaped
        yield "\n"


def _trace(caller: Caller, run: Run, reader: Reader) -> Iterator[str]:
    return exports.as_json(run, **reader.options, reviewer=caller.user)


def _record(caller: Caller, run: Run, form: str) -> None:
    """Record that another user's run was downloaded."""
    if not masking.is_own(run, caller.user):
        audit.record(caller.user, audit.EXPORTED, run, form=form)
