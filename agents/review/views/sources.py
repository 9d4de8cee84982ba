"""Opens the passage behind a citation: in its document, or as it was saved with the run."""

from collections.abc import Callable
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from agents.access.requests import UserRequest
from agents.models import AgentStep, Chunk, Document, Run
from agents.review.run_details.audited_reading import open_run
from agents.web.presentation.evidence import (
    Observation,
    cited_rows,
    observed,
    statements_citing,
)
from agents.web.presentation.formats.links import trace_url
from agents.web.presentation.markdown import render_markdown

MAX_CHUNKS = 5_000  # of a document that was indexed again
COMPARED_CHARS = 300


@require_safe
@vary_on_headers("HX-Request")
def source(request: UserRequest, pk: int, number: int) -> HttpResponse:
    """Lead to the place in the document, if the reader can open it and it is still there."""
    readable = open_run(request, pk)
    passage = _passage(readable.row, number)
    if passage is None or passage.passage is None:
        raise Http404
    saved = passage.passage
    documents = Document.objects.for_user(request.user)
    document = documents.filter(pk=saved.document or 0).first()
    if document is not None and (chunk := _same_chunk(document, passage)) is not None:
        url = reverse("library:document", args=[document.pk])
        rows: list[int] = []
        if chunk.end is not None:
            # Where in the part the rows begin that the answer, or the question, is about.
            statements = statements_citing(readable.run.answer, number)
            questions = [readable.run.query]
            starts = cited_rows(chunk.text, statements) or cited_rows(chunk.text, questions)
            # A passage can have the head of its table before its own text.
            rows = [chunk.end - len(chunk.text) + start for start in starts]
        parameters = {"part": chunk.part, "chunk": chunk.pk, "row": rows}
        return redirect(f"{url}?{urlencode(parameters, doseq=True)}#place")
    visible = (
        passage
        if not readable.is_masked
        else _passage(readable.row, number, readable.visible_row)
    )
    context = {
        "passage": visible,
        "html": render_markdown(visible.text if visible else "", top_level=2),
        "number": number,
        "document": document,
        "view": readable.view(),
        "step_url": f"{trace_url(pk)}#step-{passage.step}",
    }
    return render(request, "trace/source.html" + ("#panel" if request.htmx else ""), context)


def _passage(
    run: Run, number: int, visible_row: Callable[[AgentStep], AgentStep] | None = None
) -> Observation | None:
    kinds = (AgentStep.Kind.TOOL, AgentStep.Kind.ANSWER)
    steps = run.steps.filter(kind__in=kinds).defer("request").order_by("number")
    rows = map(visible_row, steps) if visible_row else steps
    passages = (passage for passage in observed(rows) if passage.passage is not None)
    return next((passage for passage in passages if passage.number == number), None)


def _same_chunk(document: Document, passage: Observation) -> Chunk | None:
    """Return the passage that the model read, also if the document was indexed again."""
    saved = passage.passage.chunk if passage.passage else None
    first = document.chunks.filter(pk=saved or 0).first()
    if first is not None and _is_same(first.text, passage.text):
        return first
    rows = document.chunks.order_by("ordinal").values_list("pk", "text")[:MAX_CHUNKS]
    same = next((pk for pk, text in rows.iterator() if _is_same(text, passage.text)), None)
    return document.chunks.filter(pk=same).first() if same else None


def _is_same(chunk: str, passage: str) -> bool:
    """Whether what was read begins with this chunk; a search can join several."""
    return "".join(passage.split()).startswith("".join(chunk.split())[:COMPARED_CHARS])
