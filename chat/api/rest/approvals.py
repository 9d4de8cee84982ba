"""Approvals: what waits for the user, and their decisions."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from ninja import Query, Router, Schema
from pydantic import Field

from agents.access import masking
from agents.db import database
from agents.models import AgentStep, Approval, Run
from agents.runs.approvals import Decision
from agents.runs.projection import decode_json
from agents.web.api_errors import ApiError
from agents.web.presentation import steps_of
from chat.api import calls

from .access import APPROVE, RestRequest
from .pages import Page, PageQuery, page_of
from .schemas import Input, Text, one_of

router = Router(tags=["Approvals"], exclude_none=True)


class ApprovalItem(Schema):
    """Something that a run needs from a person: a decision or an answer."""

    id: int
    run: int | None = Field(None, description="Absent for experts, who see only the question.")
    step: int
    agent: str
    tool: str
    arguments: Any = Field(description="Of the call, or the plan, the question, the limit.")
    thought: str | None = Field(None, description="Why the agent makes the call.")
    effect: Annotated[str, one_of(AgentStep.Effect)] | None = Field(
        None, description="Side effects of the call."
    )
    why: Annotated[str, one_of(Approval.Why)]
    why_text: str
    role: str | None = None
    digest: str | None = Field(
        None,
        description="To be sent with the decision, which is then about exactly this. "
        "Absent if you can’t decide, because personal data is masked.",
    )
    asked_at: datetime


class NewDecision(Input):
    """A decision about a call, a plan, a question or a limit."""

    verdict: Literal["approve", "reject", "stop"] = Field(
        description="At a limit, `approve` raises it, `reject` lets the run finish with what "
        "it has, and `stop` stops it."
    )
    digest: Text = Field(max_length=64, description="As read.")
    arguments: dict[str, Any] | None = Field(
        None, description="Changed arguments of the call, or a changed plan."
    )
    reason: Text = Field("", max_length=2_000, description="Why it is rejected, for the agent.")
    answer: Text | dict[str, Any] | None = Field(
        None,
        description="The answer to a question; for an `elicitation`, an object with the fields "
        "of its schema.",
    )


class Decided(Schema):
    approval: int
    run: int | None = None
    run_status: Annotated[str, one_of(Run.Status)]


@router.get(
    "",
    auth=APPROVE,
    response=Page[ApprovalItem],
    operation_id="listApprovals",
    summary="List pending approvals",
)
def list_approvals(request: RestRequest, query: Query[PageQuery]) -> Page[ApprovalItem]:
    """What the user can decide now."""
    waiting = calls.waiting_approvals(request.auth)
    return page_of(waiting, query, lambda row: _item(request, row))


@router.get(
    "/{int:approval_id}",
    auth=APPROVE,
    response=ApprovalItem,
    operation_id="getApproval",
    summary="Read a pending approval",
)
def get_approval(request: RestRequest, approval_id: int) -> ApprovalItem:
    waiting = calls.waiting_approvals(request.auth)
    return _item(request, get_object_or_404(waiting, pk=approval_id))


@router.post(
    "/{int:approval_id}/decision",
    auth=APPROVE,
    response=Decided,
    operation_id="decide",
    summary="Approve or reject",
)
async def decide(request: RestRequest, approval_id: int, data: NewDecision) -> Decided:
    """Decide once; a second decision is a conflict (409). The run then goes on."""
    caller = request.auth
    approval = await database.run(_decidable, request, approval_id)
    is_approved = data.verdict == "approve"
    if approval.is_elicitation:
        content = _form_content(data) if is_approved else None
        run = await calls.answer(caller, approval_id, data.digest, content)
    else:
        text = data.answer if isinstance(data.answer, str) else data.reason
        arguments = None if data.arguments is None else json.dumps(data.arguments)
        decision = Decision(
            digest=data.digest,
            is_approved=is_approved,
            arguments=arguments,
            # The reason of a call is for rejecting it; a person's answer has words either way.
            reason=text if not is_approved or approval.asks_person else "",
            action="stop" if data.verdict == "stop" else "",
        )
        run = await calls.decide(caller, approval_id, decision)
    return await database.run(_decided, request, approval_id, run)


def _form_content(data: NewDecision) -> dict[str, Any]:
    if not isinstance(data.answer, dict):
        raise ApiError(422, _("Send the answer as an object."), "invalid_answer")
    return data.answer


def _decidable(request: RestRequest, pk: int) -> Approval:
    """Return an approval of the user's, also one that was decided meanwhile."""
    return get_object_or_404(Approval.objects.for_user(request.auth.user), pk=pk)


def _decided(request: RestRequest, approval: int, run: Run) -> Decided:
    run.refresh_from_db(fields=["status"])
    is_inside = run.has_participant(request.auth.user)
    return Decided(approval=approval, run=run.pk if is_inside else None, run_status=run.status)


def _item(request: RestRequest, approval: Approval) -> ApprovalItem:
    """Return an approval, masked in a rerun of another's question: then it can't be decided.

    An expert sees the question as it is, and nothing else.
    """
    user = request.auth.user
    is_inside = approval.run.has_participant(user)
    is_for_others = approval.asks_person or approval.is_budget
    is_outside = is_for_others and not is_inside
    is_masked = not is_outside and masking.is_masked_for(approval.run, user, {})
    visible = masking.mask_row(approval) if is_masked else approval
    step = None if is_outside else steps_of([approval]).get(approval.pk)
    if step is not None and is_masked:
        step = masking.mask_row(step)
    return ApprovalItem(
        id=approval.pk,
        run=None if is_outside else approval.run_id,
        step=approval.step,
        agent=approval.agent_name,
        tool=approval.tool,
        arguments=decode_json(visible.arguments),
        thought=step.thought.strip() or None if step else None,
        effect=step.effect or None if step else None,
        why=approval.why,
        why_text=str(approval.get_why_display()),
        role=approval.role or None,
        digest=None if is_masked else approval.digest,
        asked_at=approval.asked_at,
    )
