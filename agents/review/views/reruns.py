"""A run once more, from one of its steps."""

from dataclasses import replace

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents import runs
from agents.access import audit, masking
from agents.db import database, errors
from agents.models import Run
from agents.models.runs import TRIAL
from agents.review import reruns
from agents.review.audited_reading import Reading, read
from agents.review.forms import RerunForm


@require_GET
def again(request: HttpRequest, pk: int, step: int) -> HttpResponse:
    """What would be told again, and what can be different from there on."""
    return _form(request, _found(request, pk, step), step)


@require_POST
async def rerun(request: HttpRequest, pk: int, step: int) -> HttpResponse:
    answer = await database.ask(_prepared, request, pk, step)
    if isinstance(answer, HttpResponse):
        return answer
    runs.resume(answer)
    return redirect("trace:compare", pk, answer.pk)


@require_POST
async def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """End a run again, or a trial: there is no chat in which that could be done."""
    run = await database.ask(_own, request, pk)
    await runs.stop(run)
    if run.origin_id is None:
        return redirect("trace:run", pk)
    return redirect("trace:compare", run.origin_id, pk)


def _own(request: HttpRequest, pk: int) -> Run:
    mine = Run.objects.for_user(request.user).filter(user=request.user)
    outside = Q(origin_step__isnull=False) | Q(topic__startswith=TRIAL)
    return get_object_or_404(mine.filter(outside), pk=pk)


def _prepared(request: HttpRequest, pk: int, step: int) -> Run | HttpResponse:
    """The new run, or the form with what is wrong with it."""
    found = _found(request, pk, step)
    try:
        form = RerunForm(_setup(request, found), request.user, request.POST)
    except reruns.NotRerun:
        return _form(request, found, step)
    if not form.is_valid():
        return _form(request, found, step, form)
    try:
        with errors.refusing(reruns.NotRerun):
            run, is_new = reruns.prepare_once(
                found.row, step, form.wish, request.user, form.cleaned_data["token"]
            )
    except (reruns.NotRerun, audit.NotRecorded) as reason:
        form.add_error(None, str(reason))
        return _form(request, found, step, form)
    if not is_new:
        return redirect("trace:compare", pk, run.pk)
    if masking.hides(run, request.user, request.session):
        masking.unmask(run, request.session)  # as what it was made from is, for the same reason
    return run


def _found(request: HttpRequest, pk: int, step: int) -> Reading:
    found = read(request, pk, "rerun")
    if step != 1 and not found.row.steps.filter(number=step).exists():
        raise Http404
    if not reruns.may(request.user, found.row):
        raise PermissionDenied
    return found


def _setup(request: HttpRequest, found: Reading) -> reruns.Setup:
    """Whoever runs it again has all that was said in a run of their own, as it was said."""
    if found.is_masked:
        raise reruns.NotRerun(_("Show this run unmasked first: run again, it would be."))
    return reruns.Setup(found.row, request.user.pk)


def _form(
    request: HttpRequest, found: Reading, step: int, form: RerunForm | None = None
) -> HttpResponse:
    nearest = reruns.nearest(found.row, step)
    view = replace(found.view(), may_decide=False)
    context = {"view": view, "asked": step, "step": nearest, "level": 2 if request.htmx else 1}
    context["replayed"] = [row for row in view.steps if row.number < nearest]
    try:
        setup = _setup(request, found)
        context |= {"setup": setup, "form": form or RerunForm(setup, request.user)}
    except reruns.NotRerun as reason:
        context["problem"] = str(reason)
    template = "trace/again.html#form" if request.htmx else "trace/again.html"
    return render(request, template, context, status=422 if request.method == "POST" else 200)
