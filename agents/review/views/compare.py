"""Compares two runs, and helps find the other one."""

from dataclasses import replace

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents.access.masking import is_participant, load_origins, mask_row
from agents.access.requests import UserRequest
from agents.models import Run
from agents.review.replays.comparison import Comparison
from agents.review.run_details.audited_reading import ReadableRun, open_run
from agents.web.presentation import RunView

AUDIT_SOURCE = "compare"
MAX_CANDIDATES = 20
RECENT_RUNS = 20_000  # limits the search
MAX_DIGITS = 18


@require_GET
def compare(request: UserRequest, pk: int, second_pk: int) -> HttpResponse:
    comparison = Comparison(_run_view(request, pk), _run_view(request, second_pk))
    template = "trace/compare.html#comparison" if request.htmx else "trace/compare.html"
    return render(request, template, {"comparison": comparison})


@require_GET
def compare_with(request: UserRequest, pk: int) -> HttpResponse:
    """Suggest runs to compare with, and accept any other number."""
    return _render_candidates(request, open_run(request, pk, AUDIT_SOURCE))


@require_GET
def find_comparison(request: UserRequest) -> HttpResponse:
    """Redirect to the comparison of two typed numbers."""
    numbers = [request.GET.get(name, "").strip().removeprefix("#") for name in ("a", "b")]
    first_pk, second_pk = (
        int(digits) if digits.isdecimal() and len(digits) <= MAX_DIGITS else None
        for digits in numbers
    )
    readable = open_run(request, first_pk, AUDIT_SOURCE)
    visible = Run.objects.for_user(request.user)
    if second_pk is not None and visible.filter(pk=second_pk).exists():
        return redirect("trace:compare", first_pk, second_pk)
    return _render_candidates(request, readable, _("No run has this number."))


def _run_view(request: UserRequest, pk: int) -> RunView:
    return replace(open_run(request, pk, AUDIT_SOURCE).view(), place="compare")


def _render_candidates(
    request: UserRequest, readable: ReadableRun, problem: str = ""
) -> HttpResponse:
    run = readable.row
    candidates = Run.objects.for_user(request.user).exclude(pk=run.pk).select_related("user")
    is_relative = Q(pk=run.origin_id) | Q(origin=run.pk)
    if run.origin_id:
        is_relative |= Q(origin=run.origin_id)
    newest = Run.objects.values_list("pk", flat=True).first() or 0
    recent = candidates.filter(pk__gt=newest - RECENT_RUNS)
    queries = [
        (_("Reruns"), candidates.filter(is_relative)),
        (_("Same question"), recent.filter(query=run.query)),
        (_("Same agent"), recent.filter(agent_name=run.agent_name)),
    ]
    groups = []
    listed: set[int] = set()  # each run is listed once
    for label, rows in queries:
        group = load_origins(rows.exclude(pk__in=listed)[:MAX_CANDIDATES])
        listed |= {row.pk for row in group}
        views = [
            RunView(row if is_participant(row, request.user) else mask_row(row), place="trace")
            for row in group
        ]
        if views:
            groups.append((label, views))
    context = {
        "view": readable.view(),
        "groups": groups,
        "problem": problem,
        "typed": request.GET.get("b", ""),
        "show_people": request.user.has_perm("agents.review_runs"),
    }
    return render(request, "trace/compare_with.html", context, status=422 if problem else 200)
