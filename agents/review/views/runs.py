"""The page of one run, and the details of a step."""

from collections.abc import Callable
from dataclasses import replace

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from agents.access import masking
from agents.access.requests import UserRequest
from agents.engine.material import unwrap
from agents.models import AgentStep, Approval, Run
from agents.review.run_details import turns
from agents.review.run_details.audited_reading import ReadableRun, open_run
from agents.review.run_details.step_details import (
    Excerpt,
    StepDetails,
    count_replaced_values,
    is_masked_at_rest,
)
from agents.review.run_list.listing import neighbours
from agents.runs import event_store
from agents.web.presentation import RunView, StepView
from agents.web.presentation.decisions.approvals import ApprovalView
from agents.web.sandbox import allow_frames
from agents.web.workflows import automatic

from .listing import ListLook

TABS = {
    "result": _("Result"),
    "request": _("Request"),
    "delta": _("Prompt diff"),
    "guardrails": _("Guardrails"),
    "cost": _("Cost"),
    "raw": _("Raw"),
}
DOWNLOADS = {"result": "txt", "request": "json", "raw": "json"}
MAX_FILTER_CHARS = 500


@require_GET
@allow_frames
def run_detail(request: UserRequest, pk: int) -> HttpResponse:
    readable = open_run(request, pk)
    view = replace(readable.view(), is_whole="all" in request.GET)
    query = request.GET.get("within", "").replace("\0", "")[:MAX_FILTER_CHARS]
    look = ListLook.of(request)
    newer, older = neighbours(request.user, query, pk, look.sort)
    nearby_turns = turns.turns_around(readable.row, request.user, request.session)
    context = {
        "view": view,
        "question": unwrap(view.query),  # without the marks around what a webhook said
        "chat_url": view.chat_url if readable.row.has_participant(request.user) else "",
        "is_own": readable.is_own,
        "list_href": look.url(query),
        "turns": nearby_turns,
        "has_versions": any(turn.is_sibling for turn in nearby_turns),
        "kept": look.kept(query),
        "sort": look.sort_text,
        "newer": newer,
        "older": older,
        "origin": readable.row.origin_id,
        "started_by": automatic.origin_of(readable.row.topic),
        "disconnections": readable.row.disconnections.count(),
        "replaced": count_replaced_values(readable.row),
        "is_unkept": is_masked_at_rest(readable.row),
    }
    return render(request, "trace/run.html", context)


@require_GET
def run_steps(request: UserRequest, pk: int) -> HttpResponse:
    """Return the rows that a long run's page doesn't start with."""
    view = open_run(request, pk).view()
    text = request.GET.get("after", "")
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
    context = {"view": view, "rows": view.steps[start:], "question": unwrap(view.query)}
    template = "trace/steps.html#rows" if request.htmx else "trace/steps.html"
    return render(request, template, context)


@require_GET
def step_detail(request: UserRequest, pk: int, number: int) -> HttpResponse:
    details = _load_details(request, pk, number)
    tab = request.GET.get("tab", "result")
    run = details.run
    row = details.step
    view = RunView(run, place="trace")
    rows = Approval.objects.filter(run=run, step=number).select_related("decided_by")
    visible_rows = map(masking.mask_row, rows) if details.is_masked else rows
    approvals = [ApprovalView(approval, may_decide=False) for approval in visible_rows]
    # The runs that its experiences come from, as far as this user can open them.
    origins = {experience["run"] for experience in details.experiences if experience.get("run")}
    openable = Run.objects.for_user(request.user).filter(pk__in=origins)
    numbers = run.steps.filter(number__in=[number - 1, number + 1])
    context = {
        "details": details,
        "step": StepView(
            row,
            run,
            "trace",
            job=view.job(row),
            approval=next((a for a in approvals if not a.is_elicitation), None),
            waits=tuple((a.asked_at, a.decided_at) for a in approvals if not a.granted_scope),
        ),
        "view": view,
        "tab": tab if tab in TABS else "result",
        "tabs": TABS.items(),
        "text": Excerpt.of(getattr(details, tab)) if tab in DOWNLOADS else None,
        "guards": [StepView(guard, run, "trace") for guard in details.guardrails],
        "level": 2 if request.htmx else 1,
        "beside": set(numbers.values_list("number", flat=True)),
        "openable": set(openable.values_list("pk", flat=True)),
    }
    partial = ""
    if request.htmx:
        partial = "#source" if request.htmx.target == "side-panel" else "#panel"
    return render(request, f"trace/step.html{partial}", context)


@require_GET
def payload(request: UserRequest, pk: int, number: int, name: str) -> HttpResponse:
    """Return the full text as a file, so that a browser needn't render it."""
    if name not in DOWNLOADS:
        raise Http404
    text = getattr(_load_details(request, pk, number), name)
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    file_name = f"run-{pk}-step-{number}-{name}.{DOWNLOADS[name]}"
    response["Content-Disposition"] = f'attachment; filename="{file_name}"'
    return response


@require_GET
def run_text(request: UserRequest, pk: int, name: str) -> HttpResponse:
    """Return a full text as plain text, which a browser never interprets."""
    readable = open_run(request, pk)
    if name not in TEXTS:
        raise Http404
    response = HttpResponse(TEXTS[name](readable), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'inline; filename="run-{pk}-{name}.txt"'
    response["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    return response


def _answer_text(readable: ReadableRun) -> str:
    """Return the answer, or the text so far while it is streamed."""
    if not readable.row.is_live:
        return readable.run.answer
    streamed = event_store.streamed_answer(readable.row)
    return masking.mask_text(streamed) if readable.is_masked else streamed


def _correction_text(readable: ReadableRun) -> str:
    review = getattr(readable.row, "review", None)
    return readable.visible_row(review).correction if review is not None else ""


TEXTS: dict[str, Callable[[ReadableRun], str]] = {
    "question": lambda readable: readable.run.query,
    "answer": _answer_text,
    "correction": _correction_text,
}


def _load_details(request: UserRequest, pk: int, number: int) -> StepDetails:
    readable = open_run(request, pk)
    step = get_object_or_404(AgentStep, run=readable.row, number=number)
    return StepDetails(
        readable.run,
        readable.visible_row(step),
        readable.is_masked,
        readable.hides_private,
        readable.hides_rules,
    )
