"""Approvals and questions of a run as forms that an MCP client displays to its user."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import mcp_types as wire
from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext as _

from agents.models import ApiKey, Approval, Run
from agents.runs.approvals import MAX_ANSWER_CHARS, MAX_REASON_CHARS
from agents.web.api_errors import ApiError
from agents.web.presentation import ApprovalView
from chat.api import calls, waiting

from .context import McpCall

MAX_SHOWN_CHARS = 4_000
APPROVE = "approve"
REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What is asked about one approval; its id says what was displayed."""

    id: str
    request: wire.ElicitRequest


def pending(call: McpCall, run: Run) -> list[Form]:
    """Return what the user can decide in this run now, by a form."""
    if not call.has(ApiKey.Scope.APPROVE):
        return []
    rows = calls.waiting_approvals(call.caller).filter(run=run)
    return [_form(row, call.caller.user.pk) for row in rows if not _opens_page(row)]


def describe(call: McpCall, run: Run) -> list[str]:
    """Return what the run waits for, in words."""
    rows = run.approvals.waiting().select_related("run")
    return [_question(ApprovalView(row, viewer=call.caller.user.pk)) for row in rows]


async def apply(call: McpCall, id: str, answer: wire.ElicitResult) -> bool:
    """Save the user's answer. Return False if there still is none: closing a form is none.

    What was decided elsewhere meanwhile stays as it is.
    """
    if answer.action == "cancel":
        return False
    content = dict(answer.content or {})
    if "decision" in content:
        content["approved"] = content["decision"] == APPROVE
    value = content if answer.action == "accept" else None
    try:
        await waiting.answer(call.caller, id, value)
    except ApiError as error:
        return error.status == HTTPStatus.CONFLICT
    except PermissionDenied:
        return False
    return True


def _opens_page(row: Approval) -> bool:
    """Whether it is a question about a page to open, which isn't a form."""
    return row.is_elicitation and bool(ApprovalView(row).asked.url)


def _form(row: Approval, viewer: int) -> Form:
    view = ApprovalView(row, viewer=viewer)
    params = wire.ElicitRequestFormParams(
        message=_question(view), requested_schema=_schema(row)
    )
    request = wire.ElicitRequest(params=params)
    return Form(id=f"{row.pk}-{row.digest}", request=request)


def _question(view: ApprovalView) -> str:
    row = view.approval
    if row.is_elicitation:
        return view.asked.message
    if row.is_question:
        return view.question
    if row.is_budget:
        return f"{view.limit.title}. {view.limit.sentence} {view.limit.question}"
    if row.is_plan:
        steps = "\n".join(f"- {step.name}" for step in view.plan.steps)
        return f"{_('Run this plan?')}\n{view.description}\n{steps}"[:MAX_SHOWN_CHARS]
    shown = view.readable
    if len(shown) > MAX_SHOWN_CHARS:
        shown = f"{shown[:MAX_SHOWN_CHARS]}…"
    return f"{view.heading}\n{view.why_label}\n\n{shown}"


def _schema(row: Approval) -> dict[str, Any]:
    if row.is_elicitation:
        # The tool's own, which was checked when it asked: choices keep their labels.
        schema: dict[str, Any] = json.loads(row.arguments).get("schema") or {}
        return {"type": "object", "properties": {}, **schema}
    if row.is_question:
        answer = {"type": "string", "title": _("Answer"), "maxLength": MAX_ANSWER_CHARS}
        return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    properties = {
        "decision": {"type": "string", "title": _("Decision"), "enum": [APPROVE, REJECT]},
        "reason": {"type": "string", "title": _("Reason"), "maxLength": MAX_REASON_CHARS},
    }
    return {"type": "object", "properties": properties, "required": ["decision"]}
