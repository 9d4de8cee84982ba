"""What each event means for the rows. The events are the truth; a step is what they say."""

import json
from datetime import datetime
from typing import Any

from django.db.models import F

from agents.engine.events import Event, Type
from agents.engine.termination import StopReason
from agents.models import AgentStep, Approval, Run

STATUS_OF = {
    StopReason.COMPLETED: Run.Status.COMPLETED,
    StopReason.DEGRADED: Run.Status.COMPLETED,
    StopReason.BLOCKED: Run.Status.BLOCKED,
    StopReason.ERROR: Run.Status.FAILED,
    StopReason.INTERRUPTED: Run.Status.INTERRUPTED,
}

MOST_LEVELS = 100
NUL = "\\u0000"


def decoded(text: str) -> Any:
    """JSON as data where it can be kept and shown as such.

    That cannot be done with NaN and abysses, and not everywhere with NUL and half characters.
    """
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return text
    if NUL in text:
        return text
    return text if _is_deeper(value, MOST_LEVELS) else value


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


def _run_started(run: int, event: Event) -> None:
    if event.data.get("road"):
        Run.objects.filter(pk=run).update(road=event.data["road"])


def _step_started(run: int, event: Event) -> None:
    AgentStep.objects.create(
        **_place(run, event),
        kind=event.data["kind"],
        request=event.data["request"],
        started_at=event.time,
    )
    if "parent" not in event.data:
        Run.objects.filter(pk=run).update(turns=event.data["turn"])


def _asked(run: int, event: Event) -> None:
    """A call that waits: its row is there already, and is the one that shows the question."""
    function = event.data["function"]
    call = {
        "kind": AgentStep.Kind.TOOL,
        "status": AgentStep.Status.WAITING,
        "thought": event.data["thought"],
        "call_id": event.data["id"],
        "action": function["name"],
        "action_input": decoded(function["arguments"]),
        "started_at": event.time,
    }
    if not _step(run, event).update(**call):
        AgentStep.objects.create(**_place(run, event), **call)
    question = {
        "agent_name": event.agent,
        "call_id": event.data["id"],
        "tool": function["name"],
        "arguments": function["arguments"],
        "digest": event.data["digest"],
        "why": event.data["why"],
        "verdict": Approval.Verdict.WAITING,
        "asked_at": event.time,
        # It may be asked again: what was said to the question before is in the events.
        "new_arguments": "",
        "reason": "",
        "decided_by": None,
        "decided_at": None,
    }
    Approval.objects.update_or_create(question, run_id=run, step=event.data["step"])


def _decided(run: int, event: Event) -> None:
    changed = event.data["arguments"] is not None
    approved = Approval.Verdict.EDITED if changed else Approval.Verdict.APPROVED
    Approval.objects.filter(run=run, step=event.data["step"]).update(
        verdict=approved if event.data["is_approved"] else Approval.Verdict.REJECTED,
        new_arguments=event.data["arguments"] or "",
        reason=event.data["reason"],
        decided_by=event.data["by"],
        decided_at=event.time,
    )


def _paused(run: int, event: Event) -> None:
    Run.objects.filter(pk=run).update(status=Run.Status.WAITING)


def _tool_called(run: int, event: Event) -> None:
    function = event.data["function"]
    call = {
        "kind": AgentStep.Kind.TOOL,
        "status": AgentStep.Status.RUNNING,
        "call_id": event.data["id"],
        "action": function["name"],
        "action_input": decoded(function["arguments"]),
        "started_at": datetime.fromisoformat(event.data["started"]),
    }
    if not _step(run, event).update(**call):
        AgentStep.objects.create(**_place(run, event), **call)
    Run.objects.filter(pk=run).update(tool_calls=F("tool_calls") + 1)


def _tool_responded(run: int, event: Event) -> None:
    _step(run, event).update(observation=event.data["content"], attempts=event.data["attempts"])


def _told(run: int, event: Event) -> None:
    """Notes of a step; where a model is asked again, the row itself says why."""
    note = {name: value for name, value in event.data.items() if name not in {"step", "parent"}}
    for step in _step(run, event):
        changes = {"notes": [*step.notes, note]}
        if note["kind"] == "retry":
            changes |= {"observation": note["message"], "attempts": note["attempt"]}
        if note["kind"] == "model_fallback" and step.request:
            changes["request"] = {**step.request, "model": note["to"]}
        _step(run, event).update(**changes)


def _used(run: int, event: Event) -> None:
    tokens = {name: event.data[name] for name in ("prompt_tokens", "completion_tokens")}
    cost = event.data["cost"]
    _step(run, event).update(**tokens, cost=cost)
    spent = {name: F(name) + used for name, used in tokens.items()}
    if cost is not None:
        row = Run.objects.only("cost").get(pk=run)
        spent["cost"] = (row.cost or 0) + cost
    Run.objects.filter(pk=run).update(**spent)


def _step_ended(run: int, event: Event) -> None:
    data = event.data
    ended = datetime.fromisoformat(data["ended"]) if "ended" in data else event.time
    changes = {"kind": data["kind"], "status": data["status"], "ended_at": ended}
    if data.get("thought"):
        changes["thought"] = data["thought"]
    if data.get("error"):
        changes["observation"] = data["error"]
    elif data["status"] == AgentStep.Status.DONE and data["kind"] != AgentStep.Kind.TOOL:
        changes["observation"] = ""  # what an attempt before it failed of
    _step(run, event).update(**changes)


def _guarded(run: int, event: Event) -> None:
    blocked = event.data["action"] == "block"
    AgentStep.objects.create(
        **_place(run, event),
        kind=AgentStep.Kind.GUARDRAIL,
        status=AgentStep.Status.BLOCKED if blocked else AgentStep.Status.DONE,
        action=event.data["action"],
        action_input=event.data["details"],
        observation=event.data["reason"],
        started_at=event.time,
        ended_at=event.time,
    )


def _failed(run: int, event: Event) -> None:
    _step(run, event).filter(ended_at=None).update(
        status=AgentStep.Status.FAILED, observation=event.data["message"], ended_at=event.time
    )


def _finished(run: int, event: Event) -> None:
    reason = StopReason(event.data["stopped_reason"])
    ended = datetime.fromisoformat(event.data["ended"]) if "ended" in event.data else event.time
    Run.objects.filter(pk=run).update(
        status=STATUS_OF.get(reason, Run.Status.STOPPED),
        stopped_reason=reason.value,
        answer=event.data["answer"],
        detail=event.data["detail"],
        advice=event.data["advice"],
        output=event.data.get("output"),
        turns=event.data["turns"],
        ended_at=ended,
    )


def _place(run: int, event: Event) -> dict[str, Any]:
    """What every new row of a step has: its number, whose it is, and what it is a part of."""
    parent = event.data.get("parent")
    above = AgentStep.objects.filter(run=run, number=parent).values_list("depth", flat=True)
    return {
        "run_id": run,
        "number": event.data["step"],
        "turn": event.data["turn"],
        "agent_name": event.agent,
        "first_seq": event.seq,
        "parent": parent,
        "depth": above[0] + 1 if parent else 0,
    }


def _step(run: int, event: Event):
    return AgentStep.objects.filter(run=run, number=event.data["step"])


MEANING = {
    Type.RUN_STARTED: _run_started,
    Type.STEP_STARTED: _step_started,
    Type.TOOL_CALL: _tool_called,
    Type.TOOL_RESPONSE: _tool_responded,
    Type.STATUS: _told,
    Type.USAGE: _used,
    Type.STEP: _step_ended,
    Type.GUARDRAIL: _guarded,
    Type.ERROR: _failed,
    Type.APPROVAL_REQUESTED: _asked,
    Type.APPROVAL_RESOLVED: _decided,
    Type.RUN_PAUSED: _paused,
    Type.RUN_FINISHED: _finished,
}
