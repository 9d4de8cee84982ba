"""Reruns from a step."""

from dataclasses import replace

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents import runs
from agents.access import audit, masking
from agents.access.requests import UserRequest
from agents.db import database, errors
from agents.models import Run
from agents.models.runs.runs import API_TOPIC_PREFIX, DRAFT_TOPIC_PREFIX
from agents.review.replays import reruns
from agents.review.replays.forms import RerunForm
from agents.review.run_details.audited_reading import ReadableRun, open_run


@require_GET
def rerun_form(request: UserRequest, pk: int, step: int) -> HttpResponse:
    """Display what will be replayed, and what can be changed."""
    return _render_form(request, _open_source(request, pk, step), step)


@require_POST
async def rerun(request: UserRequest, pk: int, step: int) -> HttpResponse:
    result = await database.run(_prepare_rerun, request, pk, step)
    if isinstance(result, HttpResponse):
        return result
    runs.resume(result)
    return redirect("trace:compare", pk, result.pk)


@require_POST
async def stop(request: UserRequest, pk: int) -> HttpResponse:
    """Stop a rerun or a trial, which has no chat to do that in."""
    run = await database.run(_get_own_rerun, request, pk)
    await runs.stop(run)
    if run.origin_id is None:
        return redirect("trace:run", pk)
    return redirect("trace:compare", run.origin_id, pk)


def _get_own_rerun(request: UserRequest, pk: int) -> Run:
    own_runs = Run.objects.for_user(request.user).filter(user=request.user)
    is_outside_chat = Q(origin_step__isnull=False) | Q(topic__startswith=DRAFT_TOPIC_PREFIX)
    is_outside_chat |= Q(topic__startswith=API_TOPIC_PREFIX)
    return get_object_or_404(own_runs.filter(is_outside_chat), pk=pk)


def _prepare_rerun(request: UserRequest, pk: int, step: int) -> Run | HttpResponse:
    """Return the new run, or the form with its errors."""
    readable = _open_source(request, pk, step)
    try:
        form = RerunForm(_load_setup(request, readable), request.user, request.POST)
    except reruns.RerunRejected:
        return _render_form(request, readable, step)
    if not form.is_valid():
        return _render_form(request, readable, step, form)
    try:
        with errors.reraise_as(reruns.RerunRejected):
            run, is_new = reruns.prepare_once(
                readable.row, step, form.options, request.user, form.cleaned_data["token"]
            )
    except (reruns.RerunRejected, audit.NotRecorded) as reason:
        form.add_error(None, str(reason))
        return _render_form(request, readable, step, form)
    if not is_new:
        return redirect("trace:compare", pk, run.pk)
    if masking.is_masked_for(run, request.user, request.session):
        masking.unmask(run, request.session)  # like its origin, for the same reason
    return run


def _open_source(request: UserRequest, pk: int, step: int) -> ReadableRun:
    readable = open_run(request, pk, "rerun")
    if step != 1 and not readable.row.steps.filter(number=step).exists():
        raise Http404
    if not reruns.can_rerun(request.user, readable.row):
        raise PermissionDenied
    return readable


def _load_setup(request: UserRequest, readable: ReadableRun) -> reruns.RerunSetup:
    """Return the setup; a masked run can't be rerun, because the rerun would be unmasked."""
    if readable.is_masked:
        raise reruns.RerunRejected(
            _("Unmask this run first, because a rerun shows its content unmasked.")
        )
    return reruns.RerunSetup(readable.row, request.user.pk)


def _render_form(
    request: UserRequest, readable: ReadableRun, step: int, form: RerunForm | None = None
) -> HttpResponse:
    nearest = reruns.nearest_step(readable.row, step)
    view = replace(readable.view(), may_decide=False)
    context = {"view": view, "asked": step, "step": nearest, "level": 2 if request.htmx else 1}
    context["replayed"] = [row for row in view.steps if row.number < nearest]
    try:
        setup = _load_setup(request, readable)
        context |= {"setup": setup, "form": form or RerunForm(setup, request.user)}
    except reruns.RerunRejected as reason:
        context["problem"] = str(reason)
    template = "trace/again.html#form" if request.htmx else "trace/again.html"
    return render(request, template, context, status=422 if request.method == "POST" else 200)
