"""Documents and traces as resources, as far as the key's user may read them."""

import re
from collections.abc import Iterator
from typing import Any

import mcp_types as wire
from django.utils.translation import gettext as _

from agents.access import audit, masking
from agents.models import ApiKey, Collection, Document, Run
from agents.review import exports
from agents.web.api_errors import ApiError
from chat.api import calls

from .context import McpCall

PAGE_SIZE = 100
MAX_CHARS = 2_000_000
DOCUMENTS = "documents"
RUNS = "runs"
TEMPLATES = [
    wire.ResourceTemplate(
        name="document",
        uri_template="ashiato://documents/{id}",
        description="A document of the library, as text.",
        mime_type="text/markdown",
    ),
    wire.ResourceTemplate(
        name="trace",
        uri_template="ashiato://runs/{id}.md",
        description="The trace of a run: its question, answer and steps.",
        mime_type="text/markdown",
    ),
    wire.ResourceTemplate(
        name="trace-json",
        uri_template="ashiato://runs/{id}.json",
        description="The trace of a run with its events, as JSON.",
        mime_type="application/json",
    ),
]
DOCUMENT_URI = re.compile(r"ashiato://documents/([0-9]{1,18})")
RUN_URI = re.compile(r"ashiato://runs/([0-9]{1,18})\.(md|json)")
CURSOR = re.compile(rf"({DOCUMENTS}|{RUNS})-([0-9]{{1,18}})")


def list_page(call: McpCall, cursor: str | None) -> tuple[list[wire.Resource], str | None]:
    """Return a page of resources and the cursor of the next: documents, then own runs."""
    call.caller.require(ApiKey.Scope.READ)
    matched = CURSOR.fullmatch(cursor or f"{DOCUMENTS}-{10**18 - 1}")
    if matched is None:
        raise ApiError(400, _("This cursor isn’t one of ours."))
    kind = matched[1]
    older = {"pk__lt": int(matched[2])}
    if kind == DOCUMENTS:
        documents = _documents(call).filter(**older).order_by("-pk")
        rows: list[Any] = list(documents[: PAGE_SIZE + 1])
        page = [_document(row) for row in rows[:PAGE_SIZE]]
    else:
        runs = Run.objects.listed().filter(user=call.caller.user, **older)
        rows = list(runs.only("pk", "query", "started_at").order_by("-pk")[: PAGE_SIZE + 1])
        page = [_run(row) for row in rows[:PAGE_SIZE]]
    if len(rows) > PAGE_SIZE:
        return page, f"{kind}-{rows[PAGE_SIZE - 1].pk}"
    return page, f"{RUNS}-{10**18 - 1}" if kind == DOCUMENTS else None


def _documents(call: McpCall) -> Any:
    """Return the documents of the library and of projects; files of chats stay in them."""
    collections = Collection.objects.for_user(call.caller.user).with_page()
    return Document.objects.ready().filter(collection__in=collections.values("pk"))


def _document(row: Document) -> wire.Resource:
    return wire.Resource(
        uri=f"ashiato://documents/{row.pk}",
        name=row.name,
        title=row.title,
        mime_type="text/markdown",
    )


def _run(row: Run) -> wire.Resource:
    return wire.Resource(
        uri=f"ashiato://runs/{row.pk}.md",
        name=f"run-{row.pk}",
        title=row.query[:100],
        mime_type="text/markdown",
        annotations=wire.Annotations(last_modified=row.started_at.isoformat()),
    )


def read(call: McpCall, uri: str) -> wire.TextResourceContents:
    """Return the text of a resource. Raises ApiError if the user may not read it."""
    call.caller.require(ApiKey.Scope.READ)
    if matched := DOCUMENT_URI.fullmatch(uri):
        row = _documents(call).filter(pk=int(matched[1])).first()
        pieces = None if row is None else _parts(row)
        mime_type = "text/markdown"
    elif matched := RUN_URI.fullmatch(uri):
        pieces = _trace(call, int(matched[1]), matched[2])
        mime_type = "text/markdown" if matched[2] == "md" else "application/json"
    else:
        pieces = None
    if pieces is None:
        raise ApiError(404, _("There’s no such resource, or you can’t read it."))
    return wire.TextResourceContents(uri=uri, mime_type=mime_type, text=_join(pieces))


def _parts(row: Document) -> Iterator[str]:
    for text in row.parts.order_by("number").values_list("text", flat=True).iterator():
        yield f"{text}\n\n"


def _trace(call: McpCall, pk: int, form: str) -> Iterator[str] | None:
    run = call.caller.runs().filter(pk=pk).first()
    if run is None:
        return None
    user = call.caller.user
    audit.record_view(user, run, calls.DOOR)
    if not masking.is_own(run, user):
        audit.record(user, audit.EXPORTED, run, form=form)
    is_masked = masking.is_masked_for(run, user, {})
    hides_private = masking.hides_private_parts(run, user)
    if form == "md":
        return exports.as_markdown(run, is_masked=is_masked, hides_private=hides_private)
    hides_rules = not masking.sees_rules(user)
    return exports.as_json(
        run,
        is_masked=is_masked,
        hides_private=hides_private,
        hides_rules=hides_rules,
        reviewer=user,
    )


def _join(pieces: Iterator[str]) -> str:
    joined: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_CHARS:
            # Half of a JSON file would be of no use.
            raise ApiError(
                413,
                _("This is longer than %(most)s characters. Open it in the browser.")
                % {"most": f"{MAX_CHARS:,}"},
            )
        joined.append(piece)
    return "".join(joined)
