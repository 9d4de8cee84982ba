"""What the steps of an agent change: thoughts, tool calls, usage, notes and guardrails."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agents.engine.events import REPORTED_USAGE_NOTE, Event, StatusKind
from agents.engine.guardrails import JUDGED_NOTE
from agents.engine.result_cache import CACHED_NOTE
from agents.models import AgentStep, GuardrailHit, HistorySummary

from .json_values import decode_json
from .rows import ProjectedRows, step_columns
from .search_tags import PASS_ACTION

OWN_RESULT_KINDS = {AgentStep.Kind.TASK, AgentStep.Kind.PLAN, AgentStep.Kind.EVALUATION}
ABANDONED_STATUSES = {
    AgentStep.Status.CANCELLED,
    AgentStep.Status.UNKNOWN,
    AgentStep.Status.UNSTARTED,
}
OBSERVE_ACTION = "observe"
MIN_WAIT_SECONDS = 0.01  # a wait that has begun counts


def on_step_started(rows: ProjectedRows, run: int, event: Event) -> None:
    step = AgentStep(
        **step_columns(rows, run, event),
        kind=event.data["kind"],
        request=event.data["request"],
        started_at=event.time,
    )
    rows.add_step(step)
    if "parent" not in event.data:
        rows.update_run(run, turns=event.data["turn"])


def on_tool_call(rows: ProjectedRows, run: int, event: Event) -> None:
    function = event.data["function"]
    call = {
        "kind": AgentStep.Kind.TOOL,
        "status": AgentStep.Status.RUNNING,
        "call_id": event.data["id"],
        "action": function["name"],
        "action_input": decode_json(function["arguments"]),
        "effect": event.data.get("effect", ""),
        "started_at": datetime.fromisoformat(event.data["started"]),
    }
    if not rows.steps(run, event).update(**call):
        rows.add_step(AgentStep(**step_columns(rows, run, event), **call))
    rows.count(run, tool_calls=1)


def on_tool_response(rows: ProjectedRows, run: int, event: Event) -> None:
    changes = {"observation": event.data["content"], "attempts": event.data["attempts"]}
    if event.data.get("attachments"):
        changes["attachments"] = event.data["attachments"]
    if event.data.get("sources"):
        changes["sources"] = event.data["sources"]
    if event.data.get("is_untrusted"):
        changes["is_untrusted"] = True
    if event.data.get("failed_tool"):
        changes["failed_tool"] = event.data["failed_tool"]
    rows.update_step(run, event, **changes)
    _note_cached(rows, run, event)


def _note_cached(rows: ProjectedRows, run: int, event: Event) -> None:
    """Note on a step that its result was saved earlier; there was no attempt at a call."""
    if cached := event.data.get("cached"):
        for step in rows.steps(run, event):
            notes = [*step.notes, {"kind": CACHED_NOTE, **cached}]
            rows.update_step(run, event, notes=notes, attempts=0)


def on_status(rows: ProjectedRows, run: int, event: Event) -> None:
    """Add a note to a step; a retry is also recorded in the row itself."""
    note = {name: value for name, value in event.data.items() if name not in {"step", "parent"}}
    if note["kind"] == StatusKind.LIMITED and "since" in note and not event.is_replayed:
        # So far; the run's end counts all waits.
        rows.update_run(run, waited=max(MIN_WAIT_SECONDS, note["waited"]))
    if note.get("summary") and not event.is_replayed and "parent" not in event.data:
        columns = {"text": note["summary"], "kept": note["kept"]}
        HistorySummary.objects.update_or_create(columns, run_id=run)
    for step in rows.steps(run, event):
        notes = [earlier for earlier in step.notes if not _replaces(note, earlier)]
        changes: dict[str, Any] = {"notes": [*notes, note]}
        if note["kind"] == StatusKind.RETRY:
            changes |= {"observation": note["message"], "attempts": note["attempt"]}
        if note["kind"] == StatusKind.MODEL_FALLBACK and step.request:
            # As sent to the fallback model.
            request = {**step.request, "model": note["to"]}
            request.pop("provider_model", None)
            if "provider_model" in note:
                request["provider_model"] = note["provider_model"]
            changes["request"] = request
        rows.update_step(run, event, **changes)


def _replaces(note: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Whether only the newer note matters: progress, and a place in line. Events have all."""
    if note["kind"] != earlier["kind"]:
        return False
    if note["kind"] == StatusKind.LIMITED:
        return "since" in note and note["since"] == earlier.get("since")
    return bool(note["kind"] == StatusKind.TOOL_PROGRESS)


def on_usage(rows: ProjectedRows, run: int, event: Event) -> None:
    if event.is_replayed:
        return  # the original run has paid for it
    tokens = {name: event.data[name] for name in ("prompt_tokens", "completion_tokens")}
    cost = event.data["cost"]
    if event.data.get("is_added"):  # a tool asks the model several times
        for step in rows.steps(run, event):
            total = {name: getattr(step, name) + count for name, count in tokens.items()}
            total_cost = step.cost if cost is None else (step.cost or 0) + cost
            rows.update_step(run, event, **total, cost=total_cost)
    else:
        changes = {**tokens, "cost": cost}
        for name in ("cache_read_tokens", "cache_savings"):
            if event.data.get(name):
                changes[name] = event.data[name]
        rows.update_step(run, event, **changes)
    rows.count(run, **tokens)
    if cost is not None:
        rows.count(run, cost=cost)
    _note_cached(rows, run, event)
    if reported := event.data.get("reported"):
        for step in rows.steps(run, event):
            note = {"kind": REPORTED_USAGE_NOTE, "reported": reported}
            rows.update_step(run, event, notes=[*step.notes, note])


def on_step(rows: ProjectedRows, run: int, event: Event) -> None:
    data = event.data
    if "call" in data:  # it was decided on, but not made before the stop
        function = data["call"]["function"]
        step = AgentStep(
            **step_columns(rows, run, event),
            kind=AgentStep.Kind.TOOL,
            status=data["status"],
            call_id=data["call"]["id"],
            action=function["name"],
            action_input=decode_json(function["arguments"]),
            effect=data["call"].get("effect", ""),
            started_at=event.time,
            ended_at=event.time,
        )
        rows.add_step(step)
        return
    ended = datetime.fromisoformat(data["ended"]) if "ended" in data else event.time
    changes = {"kind": data["kind"], "status": data["status"], "ended_at": ended}
    is_failed_task = (
        data["kind"] == AgentStep.Kind.TASK and data["status"] == AgentStep.Status.FAILED
    )
    if is_failed_task and rows.was_declined(run, data["step"]):
        changes["status"] = AgentStep.Status.REJECTED  # by a user, so it hasn't failed
    if data.get("thought"):
        changes["thought"] = data["thought"]
    if data.get("called"):
        changes["action"] = data["action"]  # a fallback tool was used instead
    if data["kind"] in OWN_RESULT_KINDS:
        changes["observation"] = data.get("observation", "")
    elif data.get("error"):
        changes["observation"] = data["error"]
    elif data["status"] == AgentStep.Status.DONE and data["kind"] != AgentStep.Kind.TOOL:
        changes["observation"] = ""  # error of an earlier attempt
    rows.update_step(run, event, **changes)
    if data["status"] in ABANDONED_STATUSES:
        rows.withdraw(run, ended, step=data["step"])


def on_guardrail(rows: ProjectedRows, run: int, event: Event) -> None:
    details = event.data["details"]
    action = event.data["action"]
    is_hit = bool(details.get("matches", 1))  # a model check can find nothing
    is_observed = is_hit and bool(details.get("observed"))
    judge = details.get("judge")
    started = event.data.get("started")
    label = action if is_hit or action == "block" else PASS_ACTION
    status = AgentStep.Status.DONE
    if action == "block" and not is_observed:
        status = AgentStep.Status.BLOCKED
    elif judge is not None and "error" in judge:
        status = AgentStep.Status.FAILED
    step = AgentStep(
        **step_columns(rows, run, event),
        kind=AgentStep.Kind.GUARDRAIL,
        status=status,
        action=OBSERVE_ACTION if is_observed else label,
        action_input={**details, "would": action} if is_observed else details,
        observation=event.data["reason"],
        notes=[{"kind": JUDGED_NOTE, **judge}] if judge else [],
        started_at=datetime.fromisoformat(started) if started else event.time,
        ended_at=event.time,
    )
    rows.add_step(step)
    if is_hit and details.get("id") is not None and not event.is_replayed:
        hit = GuardrailHit(
            run_id=run,
            pattern_id=details["id"],
            step=event.data["step"],
            agent_name=event.agent,
            stage=details["stage"],
            action=action,
            is_observed=is_observed,
            matches=details["matches"],
            at=event.time,
        )
        rows.add_hit(hit)
