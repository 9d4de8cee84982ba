"""What approval requests and decisions change."""

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
    if event.data["why"] == Approval.Why.ELICITATION:  # a question of a running call
        rows.update_step(run, event, status=AgentStep.Status.WAITING)
    else:
        kind = event.data.get("kind", AgentStep.Kind.TOOL)
        call: dict[str, Any] = {"status": AgentStep.Status.WAITING, "call_id": event.data["id"]}
        if kind != AgentStep.Kind.PLAN:  # a plan's row already has its name and start time
            call |= {
                "kind": kind,
                "thought": event.data["thought"],
                "action": function["name"],
                "action_input": decode_json(function["arguments"]),
                "started_at": event.time,
            }
            if event.data.get("effect"):
                call["effect"] = event.data["effect"]
        if not rows.steps(run, event).update(**call):
            rows.add_step(AgentStep(**step_columns(rows, run, event), **call))
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


def on_approval_resolved(rows: ProjectedRows, run: int, event: Event) -> None:
    data = event.data
    why = data.get("why")
    if why == Approval.Why.ELICITATION:
        verdict = VERDICT_BY_ACTION[data["action"]]
        rows.update_step(run, event, status=AgentStep.Status.RUNNING)
    elif not data["is_approved"]:
        verdict = Approval.Verdict.REJECTED
    elif data["arguments"] is not None:
        verdict = Approval.Verdict.EDITED
    else:
        verdict = Approval.Verdict.APPROVED
    new_arguments = data["arguments"] or ""
    if not new_arguments and why == Approval.Why.BUDGET:
        # At a limit, whether it was raised, or the run finishes or stops.
        new_arguments = str(data.get("action", ""))
    user_id = data["by"]
    if user_id is not None and not get_user_model().objects.filter(pk=user_id).exists():
        user_id = None  # the account was deleted
    rows.decide(
        run,
        data["step"],
        verdict=verdict,
        new_arguments=new_arguments,
        reason=data["reason"],
        decided_by=user_id,
        decided_at=event.time,
        granted_scope=(data.get("grant") or {}).get("scope", ""),
    )
