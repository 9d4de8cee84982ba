"""Approving several calls at once, and revoking standing permissions."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from agents.access import masking
from agents.access.requests import UserRequest
from agents.catalog.tools import tool_grants
from agents.db import database
from agents.models import Approval, ToolGrant
from agents.runs import approvals as approval_service

from .presentation import ApprovalView, steps_of
from .referrer import previous_page

MAX_CALLS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """What happened to one call of a batch."""

    name: str
    problem: str = ""


@require_http_methods(["GET", "POST"])
async def batch(request: UserRequest) -> HttpResponse:
    """Display every call to approve, then approve those that were checked.

    Each call is decided by itself, bound to the digest of what was displayed.
    """
    if request.method != "POST" or "confirm" not in request.POST:
        context = await database.run(_confirmation_context, request)
        return await database.run(render, request, "approvals/batch.html", context)
    user = await request.auser()
    outcomes = []
    names = await database.run(_call_names, request)
    for pk in _picked(request.POST.getlist("pick")):
        if pk not in names:
            continue  # someone else's, or not a tool's call
        decision = approval_service.Decision(
            digest=request.POST.get(f"digest-{pk}", ""), is_approved=True
        )
        try:
            await approval_service.decide(user, pk, decision)
        except Approval.DoesNotExist:
            continue
        except approval_service.DecisionRejected as reason:
            outcomes.append(BatchOutcome(name=names[pk], problem=str(reason)))
        else:
            outcomes.append(BatchOutcome(name=names[pk]))
    done = sum(not outcome.problem for outcome in outcomes)
    summary = ngettext("%(count)d call approved.", "%(count)d calls approved.", done)
    context = {
        "outcomes": outcomes,
        "summary": summary % {"count": done},
        "back": _back(request.POST.get("back", "")),
    }
    status = 200 if done == len(outcomes) else 422
    return await database.run(render, request, "approvals/batch.html", context, None, status)


@require_POST
def revoke_grant(request: UserRequest, pk: int) -> HttpResponse:
    """Revoke one's own permission; the next call asks again."""
    try:
        tool_grants.revoke(request.user, pk)
    except ToolGrant.DoesNotExist:
        raise Http404 from None
    return redirect(previous_page(request) or reverse("runs:approvals"))


def _confirmation_context(request: UserRequest) -> dict[str, Any]:
    values = request.POST if request.method == "POST" else request.GET
    calls = Approval.objects.for_user(request.user).waiting()
    calls = calls.filter(why__in=tool_grants.ELIGIBLE_REASONS)
    if picked := _picked(values.getlist("pick")):
        calls = calls.filter(pk__in=picked)
    if run_pks := _picked([values.get("run", "")]):
        calls = calls.filter(run__in=run_pks)
    rows = calls.select_related("run__user").order_by("pk")[:MAX_CALLS]
    readable = [
        row for row in rows if not masking.is_masked_for(row.run, request.user, request.session)
    ]
    steps = steps_of(readable)
    return {
        "calls": [
            ApprovalView(row, viewer=request.user.pk, step_row=steps.get(row.pk))
            for row in readable
        ],
        "back": _back(previous_page(request)),
    }


def _call_names(request: UserRequest) -> dict[int, str]:
    """Return the calls this user can approve, also those that were decided meanwhile."""
    calls = Approval.objects.for_user(request.user).filter(
        pk__in=_picked(request.POST.getlist("pick")), why__in=tool_grants.ELIGIBLE_REASONS
    )
    rows = calls.select_related("run")
    return {
        row.pk: f"{row.agent_name} · {row.tool}"
        for row in rows
        if not masking.is_masked_for(row.run, request.user, request.session)
    }


def _picked(texts: list[str]) -> list[int]:
    numbers = [text for text in texts if text.isascii() and text.isdigit() and len(text) < 19]
    return [int(text) for text in dict.fromkeys(numbers)][:MAX_CALLS]


def _back(page: str) -> str:
    """Return a page of ours to go back to."""
    is_ours = page.startswith("/") and not page.startswith("//") and "\\" not in page
    return page if is_ours and "/approvals/batch/" not in page else reverse("runs:approvals")
