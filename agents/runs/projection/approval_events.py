"""What approval requests and decisions change."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model

from agents.engine.events import Event
from agents.models import AgentStep, Approval

from .json_values import decode_json
from .rows import ProjectedRows, step_columns

# A question without an answer is withdrawn, no matter who closed it.
VERDICT_BY_ACTION = {
    "accept": Approval.Verdict.APPROVED,
    "decline": Approval.Verdict.REJECTED,
    "cancel": Approval.Verdict.WITHDRAWN,
}
MAX_ROLE_CHARS = 150


def on_approval_requested(rows: ProjectedRows, run: int, event: Event) -> None:
    """Mark the call as waiting, in the row that displays the request."""
    function = event.data["function"]
    if event.data["why"] == Approval.Why.ELICITATION:
        rows.update_step(run, event, status=AgentStep.Status.WAITING)
    else:
        _mark_waiting(rows, run, event)
    columns = {
        "agent_name": event.agent,
        "call_id": event.data["id"],
        "tool": function["name"],
        "arguments": function["arguments"],
        "digest": event.data["digest"],
        "why": event.data["why"],
        "role": event.data.get("role", "")[:MAX_ROLE_CHARS],
        "verdict": Approval.Verdict.WAITING,
        "asked_at": event.time,
        # It may be requested again: earlier decisions are in the events.
        "new_arguments": "",
        "reason": "",
        "decided_by": None,
        "decided_at": None,
        "granted_scope": "",
    }
    rows.ask(run, event.data["step"], columns)


def _mark_waiting(rows: ProjectedRows, run: int, event: Event) -> None:
    function = event.data["function"]
    call = {
        "kind": event.data.get("kind", AgentStep.Kind.TOOL),
        "status": AgentStep.Status.WAITING,
        "thought": event.data["thought"],
        "call_id": event.data["id"],
        "action": function["name"],
        "action_input": decode_json(function["arguments"]),
        "started_at": event.time,
    }
    if event.data.get("effect"):
        call["effect"] = event.data["effect"]
    if call["kind"] == AgentStep.Kind.PLAN:  # its row already has its name and start time
        call = {name: call[name] for name in ("status", "call_id")}
    if not rows.steps(run, event).update(**call):
        rows.add_step(AgentStep(**step_columns(rows, run, event), **call))


def on_approval_resolved(rows: ProjectedRows, run: int, event: Event) -> None:
    rows.decide(
        run,
        event.data["step"],
        verdict=_verdict(event.data),
        # At a limit, whether it was raised, or the run finishes or stops.
        new_arguments=event.data["arguments"] or _limit_action(event.data),
        reason=event.data["reason"],
        decided_by=_existing_user(event.data["by"]),
        decided_at=event.time,
        granted_scope=(event.data.get("grant") or {}).get("scope", ""),
    )
    if event.data.get("why") == Approval.Why.ELICITATION:
        rows.update_step(run, event, status=AgentStep.Status.RUNNING)


def _verdict(data: Mapping[str, Any]) -> str:
    if data.get("why") == Approval.Why.ELICITATION:
        return VERDICT_BY_ACTION[data["action"]]
    if not data["is_approved"]:
        return Approval.Verdict.REJECTED
    changed = data["arguments"] is not None
    return Approval.Verdict.EDITED if changed else Approval.Verdict.APPROVED


def _existing_user(pk: int | None) -> int | None:
    """Return the user's id, or None if the account no longer exists."""
    is_there = pk is not None and get_user_model().objects.filter(pk=pk).exists()
    return pk if is_there else None


def _limit_action(data: Mapping[str, Any]) -> str:
    return str(data.get("action", "")) if data.get("why") == Approval.Why.BUDGET else ""
