from dataclasses import replace
from urllib.parse import urlsplit

from channels.db import database_sync_to_async
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agents import approvals as service
from agents import display, masking
from agents.models import Approval, Run


@require_GET
def approvals(request: HttpRequest) -> HttpResponse:
    """What waits for this person: what they are asked, and calls in all their sessions."""
    return render(request, "approvals.html", _sorted(_waiting(request)))


@require_GET
def newly_asked(request: HttpRequest) -> HttpResponse:
    """For a list that is open: what waits by now and is not in it, and what waits no more."""
    waiting = _waiting(request)
    shown = {text for text in request.GET.getlist("shown") if text.isascii() and text.isdigit()}
    gone = shown - {str(view.pk) for view in waiting}
    new = [view for view in waiting if str(view.pk) not in shown]
    if not gone and not new:
        return HttpResponse(status=204)
    return render(request, "approvals.html#newly_asked", {**_sorted(new), "gone": sorted(gone)})


def _sorted(waiting: list[display.ApprovalView], **more: object) -> dict[str, object]:
    return {
        "questions": [view for view in waiting if view.asks_person],
        "calls": [view for view in waiting if not view.asks_person],
        **more,
    }


@require_GET
def approvals_link(request: HttpRequest) -> HttpResponse:
    """The way there, with how many wait; pages ask for it from time to time."""
    return render(request, "_approvals_link.html")


@require_POST
async def decide(request: HttpRequest, pk: int) -> HttpResponse:
    user = await request.auser()
    try:
        run = await service.decide(user, pk, _word(request.POST, pk))
    except Approval.DoesNotExist:
        raise Http404 from None
    except service.NotDecided as reason:
        return await database_sync_to_async(_not_decided)(request, pk, str(reason))
    if request.htmx:
        return HttpResponse(status=204)
    return redirect(await database_sync_to_async(_back)(request, run))


def _word(form: QueryDict, pk: int) -> service.Word:
    """Fields are named after their approval: without JavaScript they share one form."""
    verdict = form.get("verdict", "")
    return service.Word(
        digest=form.get(f"digest-{pk}", ""),
        is_approved=verdict == "approve",
        arguments=form.get(f"arguments-{pk}"),
        reason=form.get(f"reason-{pk}", "").replace("\0", ""),
    )


def _not_decided(request: HttpRequest, pk: int, problem: str) -> HttpResponse:
    """Why, beside what was typed: nothing of it is lost."""
    if request.htmx:
        context = {"pk": pk, "problem": problem}
        return render(request, "_approval_problem.html", context)
    typed = {name: request.POST.get(f"{name}-{pk}", "") for name in ("arguments", "reason")}
    waiting = [
        replace(view, typed=typed, problem=problem)
        if view.pk == pk and view.may_decide
        else view
        for view in _waiting(request)
    ]
    found = any(view.problem for view in waiting)
    context = _sorted(waiting, problem="" if found else problem)
    return render(request, "approvals.html", context, status=422)


def _back(request: HttpRequest, run: Run) -> str:
    """To the page on which it was decided, if that is one of ours."""
    page = urlsplit(request.headers.get("Referer", ""))
    is_ours = page.netloc == request.get_host() and page.path != request.path
    is_inside = run.is_shown_where_asked(request.user)
    home = display.RunView(run).chat_url if is_inside else ""
    return page.path if is_ours else home or reverse("runs:approvals")


def _waiting(request: HttpRequest) -> list[display.ApprovalView]:
    waiting = Approval.objects.for_user(request.user).waiting().select_related("run__user")
    return [_view(request, approval) for approval in waiting]


def _view(request: HttpRequest, approval: Approval) -> display.ApprovalView:
    """Of a run again of what somebody else asked: masked, and then it is not decided here.

    Whoever is asked for what they know is shown the question as it is, and nothing else.
    """
    if approval.asks_person and not approval.run.is_shown_where_asked(request.user):
        return display.ApprovalView(approval, is_inside=False)
    if not masking.hides(approval.run, request.user, request.session):
        return display.ApprovalView(approval)
    hidden = masking.masked(approval)
    hidden.run = masking.masked(approval.run)
    return display.ApprovalView(hidden, may_decide=False)
