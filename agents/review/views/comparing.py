"""Two runs side by side, and how to find the other one."""

from collections.abc import Iterable
from dataclasses import replace

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents import display, masking
from agents.models import Run
from agents.review.comparison import Comparison
from agents.review.reading import read

A_FEW = 20
MOST_DIGITS = 18


@require_GET
def compare(request: HttpRequest, pk: int, other: int) -> HttpResponse:
    comparison = Comparison(_view(request, pk), _view(request, other))
    part = "#comparison" if request.htmx else ""
    return render(request, f"trace/compare.html{part}", {"comparison": comparison})


@require_GET
def compare_with(request: HttpRequest, pk: int) -> HttpResponse:
    """Runs that are worth a comparison, and a place for the number of any other."""
    return _choosing(request, _view(request, pk))


@require_GET
def find_comparison(request: HttpRequest) -> HttpResponse:
    """The way by two numbers, as a person types them."""
    left, right = (_number(request.GET.get(name, "")) for name in ("a", "b"))
    view = _view(request, left)
    if Run.objects.for_user(request.user).filter(pk=right).exists():
        return redirect("trace:compare", left, right)
    return _choosing(request, view, _("There is no run with this number."))


def _view(request: HttpRequest, pk: int | None) -> display.RunView:
    if pk is None:
        raise Http404
    found = read(request, pk, "comparison")
    return replace(found.view(), place="compare")


def _choosing(request: HttpRequest, view: display.RunView, problem: str = "") -> HttpResponse:
    others = Run.objects.for_user(request.user).exclude(pk=view.pk).select_related("user")
    found = _worthwhile(view.run, others)
    context = {
        "view": view,
        "groups": [(label, display.rows(_readable(request, runs))) for label, runs in found],
        "problem": problem,
        "typed": request.GET.get("b", ""),
        "show_people": request.user.has_perm("agents.review_runs"),
    }
    return render(request, "trace/compare_with.html", context, status=422 if problem else 200)


def _readable(request: HttpRequest, runs: Iterable[Run]) -> list[Run]:
    hidden = [masking.hides(run, request.user, request.session) for run in runs]
    return [masking.masked(r) if h else r for r, h in zip(runs, hidden, strict=True)]


def _worthwhile(run: Run, others: QuerySet[Run]) -> list[tuple[str, list[Run]]]:
    """Its origin and what was made of it, the same question, the same agent; each run once."""
    kin = others.filter(Q(pk=run.origin_id) | Q(origin=run.pk) | _siblings(run))
    wanted = [
        (_("Run again"), kin),
        (_("The same question"), others.filter(query=run.query)),
        (_("The same agent"), others.filter(agent_name=run.agent_name)),
    ]
    known: set[int] = set()
    groups = []
    for label, runs in wanted:
        found = list(runs.exclude(pk__in=known)[:A_FEW])
        known |= {other.pk for other in found}
        groups += [(label, found)] if found else []
    return groups


def _siblings(run: Run) -> Q:
    return Q(origin=run.origin_id) if run.origin_id else Q(pk__in=())


def _number(text: str) -> int | None:
    digits = text.strip().removeprefix("#")
    return int(digits) if digits.isdecimal() and len(digits) <= MOST_DIGITS else None
