from dataclasses import replace
from urllib.parse import urlsplit

from channels.db import database_sync_to_async
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agents import approvals as service
from agents import display
from agents.models import Approval, Run

A_PAGE = 50
MOST_QUERY = 200


@require_GET
def run_list(request: HttpRequest) -> HttpResponse:
    status = request.GET.get("status", "")
    query = request.GET.get("q", "").replace("\0", "")[:MOST_QUERY]
    runs = Run.objects.for_user(request.user).select_related("user")
    if status in Run.Status:
        runs = runs.filter(status=status)
    if query:
        runs = runs.filter(query__icontains=query)
    page = Paginator(runs, A_PAGE).get_page(request.GET.get("page"))
    page.object_list = display.rows(page.object_list)
    context = {
        "page": page,
        "status": status,
        "statuses": Run.Status.choices,
        "q": query,
        "show_people": request.user.has_perm("agents.review_runs"),
    }
    return render(request, "trace/list.html", context)


@require_GET
def approvals(request: HttpRequest) -> HttpResponse:
    """What waits for this person, in all their sessions."""
    return render(request, "trace/approvals.html", {"waiting": _waiting(request)})


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
    return HttpResponse(status=204) if request.htmx else redirect(_back(request, run))


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
        replace(view, typed=typed, problem=problem) if view.pk == pk else view
        for view in _waiting(request)
    ]
    found = any(view.problem for view in waiting)
    context = {"waiting": waiting, "problem": "" if found else problem}
    return render(request, "trace/approvals.html", context, status=422)


def _back(request: HttpRequest, run: Run) -> str:
    """To the page on which it was decided, if that is one of ours."""
    page = urlsplit(request.headers.get("Referer", ""))
    is_ours = page.netloc == request.get_host() and page.path != request.path
    return page.path if is_ours else display.RunView(run).chat_url or reverse("trace:approvals")


def _waiting(request: HttpRequest) -> list[display.ApprovalView]:
    waiting = Approval.objects.for_user(request.user).waiting().select_related("run")
    return [display.ApprovalView(approval) for approval in waiting]


@require_GET
def run(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Run.objects.for_user(request.user), pk=pk)
    is_own = row.user_id == request.user.pk
    view = display.RunView(row, place="trace", may_decide=is_own)
    chat_url = view.chat_url if is_own else ""
    context = {"view": view, "question": row.query, "chat_url": chat_url}
    return render(request, "trace/run.html", context)
