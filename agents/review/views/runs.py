"""The page of one run, and the details of a step."""

from collections.abc import Callable
from dataclasses import replace

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from agents.access import masking
from agents.access.requests import UserRequest
from agents.models import AgentStep, Approval, Run
from agents.review import turns
from agents.review.audited_reading import ReadableRun, open_run
from agents.review.listing import neighbours
from agents.review.step_details import (
    Excerpt,
    StepDetails,
    count_replaced_values,
    is_masked_at_rest,
)
from agents.runs import event_store
from agents.web.presentation import RunView, StepView
from agents.web.presentation.approvals import ApprovalView
from agents.web.sandbox import allow_frames

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
    found = open_run(request, pk)
    view = replace(found.view(), is_whole="all" in request.GET)
    within = request.GET.get("within", "").replace("\0", "")[:MAX_FILTER_CHARS]
    look = ListLook.of(request)
    newer, older = neighbours(request.user, within, pk, look.sort)
    around = turns.turns_around(found.row, request.user, request.session)
    context = {
        "view": view,
        "question": view.query,
        "chat_url": view.chat_url if found.row.has_participant(request.user) else "",
        "is_own": found.is_own,
        "list_href": look.url(within),
        "turns": around,
        "has_versions": any(turn.is_sibling for turn in around),
        "kept": look.kept(within),
        "sort": look.sort_text,
        "newer": newer,
        "older": older,
        "origin": found.row.origin_id,
        "absences": found.row.absences.count(),
        "replaced": count_replaced_values(found.row),
        "is_unkept": is_masked_at_rest(found.row),
    }
    return render(request, "trace/run.html", context)


@require_GET
def run_steps(request: UserRequest, pk: int) -> HttpResponse:
    """Return the rows that a long run's page doesn't start with."""
    view = open_run(request, pk).view()
    after = _parse_number(request.GET.get("after", "0"))
    context = {"view": view, "rows": view.steps[after:], "question": view.query}
    template = "trace/steps.html#rows" if request.htmx else "trace/steps.html"
    return render(request, template, context)


@require_GET
def step_detail(request: UserRequest, pk: int, number: int) -> HttpResponse:
    details = _load_details(request, pk, number)
    tab = request.GET.get("tab", "result")
    run, row = details.run, details.step
    view = RunView(run, place="trace")
    asked = Approval.objects.filter(run=run, step=number).select_related("decided_by")
    seen = map(masking.mask_row, asked) if details.is_masked else asked
    approvals = [ApprovalView(each, may_decide=False) for each in seen]
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
        "openable": _openable_origins(request, details),
    }
    template = "trace/step.html#panel" if request.htmx else "trace/step.html"
    return render(request, template, context)


def _openable_origins(request: UserRequest, details: StepDetails) -> set[int]:
    """Return the runs that its experiences come from, as far as this user can open them."""
    origins = {one["run"] for one in details.experiences if one.get("run")}
    if not origins:
        return set()
    seen = Run.objects.for_user(request.user).filter(pk__in=origins)
    return set(seen.values_list("pk", flat=True))


@require_GET
def payload(request: UserRequest, pk: int, number: int, name: str) -> HttpResponse:
    """Return the full text as a file, so that a browser needn't render it."""
    if name not in DOWNLOADS:
        raise Http404
    text = getattr(_load_details(request, pk, number), name)
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    file = f"run-{pk}-step-{number}-{name}.{DOWNLOADS[name]}"
    answer["Content-Disposition"] = f'attachment; filename="{file}"'
    return answer


@require_GET
def run_text(request: UserRequest, pk: int, name: str) -> HttpResponse:
    """Return a full text as plain text, which a browser never interprets."""
    found = open_run(request, pk)
    if name not in TEXTS:
        raise Http404
    answer = HttpResponse(TEXTS[name](found), content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'inline; filename="run-{pk}-{name}.txt"'
    answer["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    return answer


def _answer_text(found: ReadableRun) -> str:
    """Return the answer, or the text so far while it is streamed."""
    if not found.row.is_live:
        return found.run.answer
    streamed = event_store.streamed_answer(found.row)
    return masking.mask_text(streamed) if found.is_masked else streamed


def _correction_text(found: ReadableRun) -> str:
    review = getattr(found.row, "review", None)
    return found.visible_row(review).correction if review is not None else ""


TEXTS: dict[str, Callable[[ReadableRun], str]] = {
    "question": lambda found: found.run.query,
    "answer": _answer_text,
    "correction": _correction_text,
}


def _load_details(request: UserRequest, pk: int, number: int) -> StepDetails:
    found = open_run(request, pk)
    step = get_object_or_404(AgentStep, run=found.row, number=number)
    return StepDetails(
        found.run,
        found.visible_row(step),
        found.is_masked,
        found.hides_private,
        found.hides_rules,
    )


def _parse_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
