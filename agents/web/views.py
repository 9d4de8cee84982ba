"""Approvals: the list of those that wait, and the decisions about them."""

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agents.access import masking
from agents.access.requests import UserRequest
from agents.db import database
from agents.models import AgentStep, Approval, Run
from agents.models.types import AnyUser
from agents.runs import approvals as approval_service
from agents.runs import argument_edits, plan_edits, question_answers

from . import presentation
from .referrer import previous_page

ADD_STEP = "add"
# Only these buttons allow a tool from now on; a plain approval never does.
ALWAYS_VERDICTS = {"always-chat": "chat", "always-user": "user"}
ACTIONS: dict[str, question_answers.Action] = {"approve": "accept", "reject": "decline"}


@require_GET
def approvals(request: UserRequest) -> HttpResponse:
    """List the user's pending approvals in all their chats."""
    return render(request, "approvals/inbox.html", _approvals_context(_waiting_views(request)))


@require_GET
def new_approvals(request: UserRequest) -> HttpResponse:
    """Return new and withdrawn approvals for an open list."""
    waiting = _waiting_views(request)
    listed = {
        text for text in request.GET.getlist("shown") if text.isascii() and text.isdigit()
    }
    gone = listed - {str(view.pk) for view in waiting}
    new = [view for view in waiting if str(view.pk) not in listed]
    if not gone and not new:
        return HttpResponse(status=204)
    return render(
        request,
        "approvals/inbox.html#new_approvals",
        {**_approvals_context(new), "gone": sorted(gone)},
    )


def _approvals_context(
    waiting: list[presentation.ApprovalView], **context: object
) -> dict[str, object]:
    return {
        "questions": [view for view in waiting if _is_question(view)],
        "calls": [view for view in waiting if not _is_question(view)],
        **context,
    }


def _is_question(view: presentation.ApprovalView) -> bool:
    return view.asks_person or view.is_elicitation or view.is_budget


@require_GET
def approvals_link(request: UserRequest) -> HttpResponse:
    """Render the approvals link with its count; pages poll it."""
    return render(request, "layout/_approvals_link.html")


@require_POST
async def decide(request: UserRequest, pk: int) -> HttpResponse:
    user = await request.auser()
    try:
        approval = await database.run(_decidable, user, pk)
        if approval.is_elicitation:
            return await _answer(request, user, pk)
        form = await database.run(_edit_form, request, approval)
        plan = form if isinstance(form, plan_edits.PlanForm) else None
        if plan and request.POST.get("verdict") == ADD_STEP:
            return await database.run(_add_step_response, request, pk, plan)
        # Fields are named per approval, because without JavaScript they share one form.
        verdict = request.POST.get("verdict", "")
        is_approved = verdict == "approve" or verdict in ALWAYS_VERDICTS
        reason_text = request.POST.get(f"reason-{pk}", "").replace("\0", "")
        decision = approval_service.Decision(
            digest=request.POST.get(f"digest-{pk}", ""),
            is_approved=is_approved,
            always=ALWAYS_VERDICTS.get(verdict, ""),
            action="stop" if verdict == "stop" else "",
            arguments=form.arguments,
            # The field of a call is for rejecting it; a person's answer has words either way.
            reason="" if is_approved and not approval.asks_person else reason_text,
        )
        run = await approval_service.decide(user, pk, decision)
    except Approval.DoesNotExist:
        raise Http404 from None
    except approval_service.DecisionRejected as reason:
        return await database.run(_rejection_response, request, pk, reason, plan)
    if request.htmx:
        return HttpResponse(status=204)
    return redirect(await database.run(_return_url, request, run))


def _decidable(user: AnyUser, pk: int) -> Approval:
    return Approval.objects.for_user(user).get(pk=pk)


async def _answer(request: UserRequest, user: AnyUser, pk: int) -> HttpResponse:
    """Save the answer to a running tool's question, or show what is wrong with it."""
    verdict = request.POST.get("verdict", "")
    action = ACTIONS.get(verdict, "cancel")
    # What was typed into the tool's form, by field number.
    typed: dict[int, list[str]] = {}
    prefix = f"field-{pk}-"
    for name, texts in request.POST.lists():
        number = name.removeprefix(prefix)
        if number != name and number.isascii() and number.isdigit() and len(number) < 4:
            plain = [str(text).replace("\0", "").replace("\r\n", "\n") for text in texts]
            typed[int(number)] = plain
    digest = request.POST.get(f"digest-{pk}", "")
    answer = question_answers.Answer(digest=digest, action=action, typed=typed)
    try:
        run = await question_answers.submit_answer(user, pk, answer)
    except question_answers.InvalidAnswer as reason:
        changes = {"problem": str(reason), "problems": reason.problems, "form": typed}
        return await database.run(_form_response, request, pk, status=422, **changes)
    except approval_service.DecisionRejected as reason:
        return await database.run(_rejection_response, request, pk, reason, None, form=typed)
    if request.htmx:
        return HttpResponse(status=204)
    return redirect(await database.run(_return_url, request, run))


def _edit_form(
    request: UserRequest, approval: Approval
) -> plan_edits.PlanForm | argument_edits.ArgumentForm:
    """Return the submitted changes to a plan or to a call's arguments."""
    if approval.is_plan:
        capabilities = plan_edits.PlanCapabilities.of(approval)
        return plan_edits.PlanForm(request.POST, approval, capabilities)
    return argument_edits.ArgumentForm(request.POST, approval)


def _rejection_response(
    request: UserRequest,
    pk: int,
    reason: approval_service.DecisionRejected,
    plan: plan_edits.PlanForm | None,
    **typed: Any,
) -> HttpResponse:
    """Render the reason with the typed text, so that nothing is lost."""
    problem = str(reason)
    if isinstance(reason, approval_service.InvalidPlan) and plan:
        edited = {"draft": plan.draft, "problems": plan.problems(reason.problems)}
        return _form_response(request, pk, status=422, problem=problem, **edited)
    if request.htmx:
        context = {"pk": pk, "problem": problem}
        return render(request, "run/_approval_problem.html", context)
    changes = {"problem": problem, "draft": plan and plan.draft, **typed}
    return _form_response(request, pk, status=422, **changes)


def _add_step_response(
    request: UserRequest, pk: int, plan: plan_edits.PlanForm
) -> HttpResponse:
    picked = request.POST.get(f"plan-{pk}-pick", "")
    return _form_response(request, pk, draft=plan.draft.with_step(picked))


def _form_response(
    request: UserRequest, pk: int, *, status: int = 200, **changes: Any
) -> HttpResponse:
    """Render the pending approvals with what the user typed for one of them."""
    raw_texts = {name: request.POST.get(f"{name}-{pk}", "") for name in ("arguments", "reason")}
    fields = argument_edits.field_name(pk, "")
    names = [name for name in request.POST if name.startswith(fields)]
    raw_texts |= {name: request.POST.get(name, "") for name in names}
    typed = {name: text.replace("\r\n", "\n") for name, text in raw_texts.items()}
    waiting = [
        replace(view, typed=typed, **changes) if view.pk == pk and view.may_decide else view
        for view in _waiting_views(request)
    ]
    edited_view = next((view for view in waiting if view.typed), None)
    if request.htmx and edited_view is not None:
        template = (
            "run/_elicitation.html" if edited_view.is_elicitation else "run/_approval.html"
        )
        return render(request, template, {"approval": edited_view, "is_oob": True})
    problem = "" if edited_view is not None else changes.get("problem", "")
    context = _approvals_context(waiting, problem=problem)
    return render(request, "approvals/inbox.html", context, status=status)


def _return_url(request: UserRequest, run: Run) -> str:
    """Return the page on which it was decided, if it is ours."""
    page = previous_page(request).partition("?")[0]
    if page and page != request.path:
        return page
    is_inside = run.has_participant(request.user)
    home = presentation.RunView(run).chat_url if is_inside else ""
    return home or reverse("runs:approvals")


def _waiting_views(request: UserRequest) -> list[presentation.ApprovalView]:
    waiting = list(
        Approval.objects.for_user(request.user).waiting().select_related("run__user__profile")
    )
    steps = presentation.steps_of(waiting)
    return [_approval_view(request, approval, steps.get(approval.pk)) for approval in waiting]


def _approval_view(
    request: UserRequest, approval: Approval, step: AgentStep | None
) -> presentation.ApprovalView:
    """Return the view of an approval, masked in a rerun of another user's question.

    A masked one can't be decided. An expert sees the question as it is, and nothing else.
    """
    if (embed := approval.embed_for(request.user)) is not None:
        return presentation.ApprovalView(
            approval, viewer=request.user.pk, step_row=step, visitor_of=embed.name
        )
    is_for_others = approval.asks_person or approval.is_budget
    if is_for_others and not approval.run.has_participant(request.user):
        return presentation.ApprovalView(approval, is_inside=False, viewer=request.user.pk)
    if not masking.is_masked_for(approval.run, request.user, request.session):
        return presentation.ApprovalView(approval, viewer=request.user.pk, step_row=step)
    hidden = masking.mask_row(approval)
    hidden.run = masking.mask_row(approval.run)
    hidden_step = masking.mask_row(step) if step else None
    return presentation.ApprovalView(hidden, may_decide=False, step_row=hidden_step)
