"""Compares two runs, and helps find the other one."""

from dataclasses import replace

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents.access.masking import is_participant, load_origins, mask_row
from agents.access.requests import UserRequest
from agents.models import Run
from agents.review.audited_reading import ReadableRun, open_run
from agents.review.comparison import Comparison
from agents.web.presentation import RunView

AUDIT_SOURCE = "compare"
MAX_CANDIDATES = 20
RECENT_RUNS = 20_000  # limits the search
MAX_DIGITS = 18


@require_GET
def compare(request: UserRequest, pk: int, other: int) -> HttpResponse:
    comparison = Comparison(_run_view(request, pk), _run_view(request, other))
    part = "#comparison" if request.htmx else ""
    return render(request, f"trace/compare.html{part}", {"comparison": comparison})


@require_GET
def compare_with(request: UserRequest, pk: int) -> HttpResponse:
    """Suggest runs to compare with, and accept any other number."""
    return _render_candidates(request, open_run(request, pk, AUDIT_SOURCE))


@require_GET
def find_comparison(request: UserRequest) -> HttpResponse:
    """Redirect to the comparison of two typed numbers."""
    left, right = (_parse_number(request.GET.get(name, "")) for name in ("a", "b"))
    readable = open_run(request, left, AUDIT_SOURCE)
    if right is not None and Run.objects.for_user(request.user).filter(pk=right).exists():
        return redirect("trace:compare", left, right)
    return _render_candidates(request, readable, _("No run has this number."))


def _run_view(request: UserRequest, pk: int) -> RunView:
    return replace(open_run(request, pk, AUDIT_SOURCE).view(), place="compare")


def _render_candidates(
    request: UserRequest, readable: ReadableRun, problem: str = ""
) -> HttpResponse:
    others = (
        Run.objects.for_user(request.user).exclude(pk=readable.row.pk).select_related("user")
    )
    groups = _candidate_groups(readable.row, others)
    context = {
        "view": readable.view(),
        "groups": [
            (label, [_candidate_view(request, run) for run in runs]) for label, runs in groups
        ],
        "problem": problem,
        "typed": request.GET.get("b", ""),
        "show_people": request.user.has_perm("agents.review_runs"),
    }
    return render(request, "trace/compare_with.html", context, status=422 if problem else 200)


def _candidate_view(request: UserRequest, run: Run) -> RunView:
    return RunView(run if is_participant(run, request.user) else mask_row(run), place="trace")


def _candidate_groups(run: Run, others: QuerySet[Run]) -> list[tuple[str, list[Run]]]:
    """Return origin and reruns, same question, same agent; each run once."""
    kin = others.filter(Q(pk=run.origin_id) | Q(origin=run.pk) | _sibling_filter(run))
    newest = Run.objects.values_list("pk", flat=True).first() or 0
    recent = others.filter(pk__gt=newest - RECENT_RUNS)
    queries = [
        (_("Reruns"), kin),
        (_("Same question"), recent.filter(query=run.query)),
        (_("Same agent"), recent.filter(agent_name=run.agent_name)),
    ]
    known: set[int] = set()
    groups = []
    for label, runs in queries:
        candidates = load_origins(runs.exclude(pk__in=known)[:MAX_CANDIDATES])
        known |= {other.pk for other in candidates}
        groups += [(label, candidates)] if candidates else []
    return groups


def _sibling_filter(run: Run) -> Q:
    return Q(origin=run.origin_id) if run.origin_id else Q(pk__in=())


def _parse_number(text: str) -> int | None:
    digits = text.strip().removeprefix("#")
    return int(digits) if digits.isdecimal() and len(digits) <= MAX_DIGITS else None
