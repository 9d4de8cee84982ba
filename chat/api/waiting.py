"""What a run waits for, as protocols show it, and answers to it as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from agents.db import database
from agents.models import ApiKey, Approval, Run
from agents.runs.approvals import Decision
from agents.web.api_errors import ApiError

from . import calls
from .calls import Caller

Why = Approval.Why
MAX_DIGITS = 19

DECISION_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "arguments": {"type": "object", "description": "Instead of those that were asked for."},
    },
    "required": ["approved"],
}
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest:
    """An approval, a question or a form that a run waits for.

    Its id contains the digest of what is displayed, so that an answer can't be for more.
    """

    id: str
    why: str
    call_id: str
    tool: str
    arguments: Any
    raw_arguments: str
    message: str
    schema: Mapping[str, Any]

    @property
    def is_about_call(self) -> bool:
        """Whether it asks for approval of a tool call."""
        return self.schema is DECISION_SCHEMA and self.why not in (Why.PLAN, Why.BUDGET)

    @property
    def text(self) -> str:
        """What is asked, in one text."""
        if not self.is_about_call:
            return self.message
        arguments = json.dumps(self.arguments, ensure_ascii=False)
        return f"{self.message}\n{self.tool} {arguments}"


def requests_of(run: Run) -> list[WaitingRequest]:
    """Return what the run waits for, whoever can answer; functions of a program aside."""
    waiting = Approval.objects.filter(run=run).exclude(why=Why.CLIENT).waiting()
    return [request_of(approval) for approval in waiting.order_by("pk")]


def request_of(approval: Approval) -> WaitingRequest:
    """Return an approval as protocols show it."""
    arguments = json.loads(approval.arguments)
    schema = DECISION_SCHEMA
    message = str(approval.get_why_display())
    if approval.is_question:
        schema = ANSWER_SCHEMA
        message = str(arguments.get("question") or message)
    elif approval.is_elicitation:
        schema = arguments.get("schema") or {"type": "object", "properties": {}}
        message = "\n".join(filter(None, [arguments["message"], arguments.get("url")]))
    return WaitingRequest(
        id=f"{approval.pk}-{approval.digest}",
        why=approval.why,
        # A form has an id of its own besides that of its call.
        call_id=approval.call_id.partition("/")[0],
        tool=approval.tool,
        arguments=arguments,
        raw_arguments=approval.arguments,
        message=message,
        schema=schema,
    )


async def answer(caller: Caller, id: str, value: Mapping[str, Any] | None) -> Run:
    """Answer a request; None rejects it. Raises ApiError if the value doesn't fit."""
    caller.require(ApiKey.Scope.APPROVE)
    approval = await database.run(find, caller, id)
    _number, _dash, digest = id.partition("-")
    if approval.is_elicitation:
        return await calls.answer(caller, approval.pk, digest, value)
    return await calls.decide(caller, approval.pk, _decision(approval, digest, value))


def find(caller: Caller, id: str) -> Approval:
    """Return an approval that the user can decide, with its run. Raises ApiError."""
    number, _dash, _digest = id.partition("-")
    approval = None
    if number.isascii() and number.isdigit() and len(number) < MAX_DIGITS:
        own = Approval.objects.for_user(caller.user).select_related("run")
        approval = own.filter(pk=int(number)).first()
    if approval is None:
        raise calls.no_such_request()
    return approval


def read_value(value: Any) -> Mapping[str, Any]:
    """Return an answer that a program has sent. Raises ApiError if it isn't an object."""
    if not isinstance(value, dict):
        raise ApiError(422, _("Send the answer as a JSON object."), "invalid_answer")
    return value


def _decision(approval: Approval, digest: str, value: Mapping[str, Any] | None) -> Decision:
    if value is None:
        return Decision(digest=digest, is_approved=False)
    if approval.is_question:
        text = value.get("answer")
        if not isinstance(text, str):
            raise ApiError(422, _('Send {"answer": "…"}.'), "invalid_answer")
        return Decision(digest=digest, is_approved=True, reason=text)
    is_approved = value.get("approved")
    reason = value.get("reason") or ""
    arguments = value.get("arguments")
    if not isinstance(is_approved, bool) or not isinstance(reason, str):
        raise ApiError(
            422, _('Send {"approved": true} or {"approved": false}.'), "invalid_answer"
        )
    return Decision(
        digest=digest,
        is_approved=is_approved,
        reason=reason,
        arguments=None if arguments is None else json.dumps(arguments),
    )
