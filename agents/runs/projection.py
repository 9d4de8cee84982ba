"""Applies events to rows. The events are the source of truth; steps are derived from them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from agents.db.compiled_queries import compiled_query
from agents.db.fast_writes import Increment, update
from agents.engine.events import Event, EventType, StatusKind
from agents.engine.loop import StopReason
from agents.models import AgentStep, Approval, GuardrailHit, Run

from .intervals import total_length, union

STATUS_BY_REASON = {
    StopReason.COMPLETED: Run.Status.COMPLETED,
    StopReason.DEGRADED: Run.Status.COMPLETED,
    StopReason.BLOCKED: Run.Status.BLOCKED,
    StopReason.ERROR: Run.Status.FAILED,
    StopReason.INTERRUPTED: Run.Status.INTERRUPTED,
}

# Fields of a run's start that describe its setup.
SETUP_FIELDS = ("model", "dialect", "instructions", "tools", "max_steps")
TASK_FIELDS = ("plan", "work", "what", "expected", "is_each")
PLAN_FIELDS = ("plan", "description", "steps", "parameters", "by", "changes", "feedback")
EVALUATION_FIELDS = ("plan", "expected", "is_met", "reason", "feedback")
PANEL_FIELDS = ("merge", "heads", "groups", "chosen", "differences")
OWN_RESULT_KINDS = {AgentStep.Kind.TASK, AgentStep.Kind.PLAN, AgentStep.Kind.EVALUATION}
ABANDONED_STATUSES = {
    AgentStep.Status.CANCELLED,
    AgentStep.Status.UNKNOWN,
    AgentStep.Status.UNSTARTED,
}
# A question without an answer is withdrawn, whoever closed it.
VERDICT_BY_ACTION = {
    "accept": Approval.Verdict.APPROVED,
    "decline": Approval.Verdict.REJECTED,
    "cancel": Approval.Verdict.WITHDRAWN,
}
VERSION_CHARS = 8
MAX_TAGS = 100
MAX_NAME_CHARS = 64
MAX_ROLE_CHARS = 150
MAX_JSON_DEPTH = 100
OBSERVE_ACTION = "observe"
NUL_ESCAPE = "\\u0000"


class Projection:
    """Collects changes to runs and steps, so that each row is written once per batch."""

    def __init__(self) -> None:
        self._runs: dict[int, dict[str, Any]] = {}
        self._steps: dict[tuple[int, int], dict[str, Any]] = {}
        self._new_steps: dict[tuple[int, int], AgentStep] = {}
        self._new_hits: list[GuardrailHit] = []

    def take(self, run: int, event: Event) -> None:
        if (meaning := HANDLERS.get(event.type)) is not None:
            meaning(self, run, event)

    def update_run(self, run: int, **changes: Any) -> None:
        self._runs.setdefault(run, {}).update(changes)

    def count(self, run: int, **amounts: float) -> None:
        changes = self._runs.setdefault(run, {})
        for name, amount in amounts.items():
            changes[name] = changes.get(name, Increment(0)) + Increment(amount)

    def add_step(self, step: AgentStep) -> None:
        self._new_steps[step.run_id, step.number] = step

    def add_hit(self, hit: GuardrailHit) -> None:
        self._new_hits.append(hit)

    def update_step(self, run: int, event: Event, **changes: Any) -> None:
        place = run, event.data["step"]
        if (step := self._new_steps.get(place)) is not None:
            vars(step).update(changes)
        else:
            self._steps.setdefault(place, {}).update(changes)

    def steps(self, run: int, event: Event) -> QuerySet[AgentStep]:
        """Return the step with all pending changes written."""
        self._write_steps()
        return AgentStep.objects.filter(run=run, number=event.data["step"])

    def marks(self, run: int) -> str:
        """Return the run's search tags as one string, because scanning all steps takes long."""
        self._write_steps()
        found = {mark for step in _step_summaries(run) for mark in _step_tags(*step)}
        return f"|{'|'.join(sorted(found)[:MAX_TAGS])}|"

    def was_declined(self, run: int, number: int) -> bool:
        """Whether a step failed only because a person rejected it."""
        self._write_steps()
        parts = AgentStep.objects.filter(run=run, parent=number)
        found = set(parts.values_list("status", flat=True))
        return AgentStep.Status.REJECTED in found and AgentStep.Status.FAILED not in found

    def depth(self, run: int, number: int) -> int:
        if (step := self._new_steps.get((run, number))) is not None:
            return step.depth
        return AgentStep.objects.values_list("depth", flat=True).get(run=run, number=number)

    def began(self, run: int) -> datetime:
        return _start_times(run)[0]

    def waits(self, run: int) -> Iterable[tuple[datetime, datetime | None]]:
        """Return when approvals were requested and decided."""
        return _approval_times(run)

    def ask(self, run: int, step: int, question: dict[str, Any]) -> None:
        Approval.objects.update_or_create(question, run_id=run, step=step)

    def decide(self, run: int, step: int, **word: Any) -> None:
        Approval.objects.filter(run=run, step=step).update(**word)

    def withdraw(self, run: int, at: datetime, **which: Any) -> None:
        """Withdraw pending approvals, because a decision would change nothing."""
        verdicts = Approval.Verdict
        withdrawn = {"verdict": verdicts.WITHDRAWN, "decided_at": at}
        update(Approval, withdrawn, run=run, verdict=verdicts.WAITING, **which)

    def write(self) -> None:
        self._write_steps()
        if self._new_hits:
            GuardrailHit.objects.bulk_create(self._new_hits)
        for run, changes in self._runs.items():
            update(Run, changes, id=run)
        self._runs, self._new_hits = {}, []

    def _write_steps(self) -> None:
        if self._new_steps:
            AgentStep.objects.bulk_create(self._new_steps.values())
        for (run, number), changes in self._steps.items():
            update(AgentStep, changes, run=run, number=number)
        self._new_steps, self._steps = {}, {}


def decode_json(text: str) -> Any:
    """Return JSON as data if it can be saved and displayed.

    NaN and deep nesting can't, and NUL and lone surrogates not everywhere.
    """
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return text
    if NUL_ESCAPE in text:
        return text
    return text if _exceeds_depth(value, MAX_JSON_DEPTH) else value


def _exceeds_depth(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_exceeds_depth(item, levels - 1) for item in items)


def _on_run_started(rows: Projection, run: int, event: Event) -> None:
    rows.update_run(run, road=event.data.get("road", ""), version=setup_version(event.data))


def setup_version(started: Mapping[str, Any]) -> str:
    """Return a short hash of a run's setup, equal for equal setups."""
    setup = {name: started.get(name) for name in SETUP_FIELDS}
    text = json.dumps(setup, sort_keys=True, ensure_ascii=False, default=str)
    return sha256(text.encode(errors="replace")).hexdigest()[:VERSION_CHARS]


def _on_step_started(rows: Projection, run: int, event: Event) -> None:
    step = AgentStep(
        **_step_columns(rows, run, event),
        kind=event.data["kind"],
        request=event.data["request"],
        started_at=event.time,
    )
    rows.add_step(step)
    if "parent" not in event.data:
        rows.update_run(run, turns=event.data["turn"])


def _on_approval_requested(rows: Projection, run: int, event: Event) -> None:
    """Mark the call as waiting, in the row that displays the request."""
    function = event.data["function"]
    if event.data["why"] == Approval.Why.ELICITATION:
        rows.update_step(run, event, status=AgentStep.Status.WAITING)
    else:
        _mark_waiting(rows, run, event)
    question = {
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
    rows.ask(run, event.data["step"], question)


def _mark_waiting(rows: Projection, run: int, event: Event) -> None:
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
        rows.add_step(AgentStep(**_step_columns(rows, run, event), **call))


def _on_approval_resolved(rows: Projection, run: int, event: Event) -> None:
    rows.decide(
        run,
        event.data["step"],
        verdict=_verdict(event.data),
        new_arguments=event.data["arguments"] or "",
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


def _on_run_paused(rows: Projection, run: int, event: Event) -> None:
    if not event.is_replayed:
        rows.update_run(run, status=Run.Status.WAITING)


def _on_task(rows: Projection, run: int, event: Event) -> None:
    """Add a row for a plan step, a plan or an evaluation, with its work below it."""
    about = {name: event.data[name] for name in TASK_FIELDS if event.data.get(name)}
    step = AgentStep(
        **_step_columns(rows, run, event),
        kind=event.data["kind"],
        action=event.data["name"],
        action_input=about,
        started_at=event.time,
    )
    rows.add_step(step)
    if event.data["kind"] == AgentStep.Kind.TASK and "parent" not in event.data:
        rows.count(run, tasks=1)


def _on_plan(rows: Projection, run: int, event: Event) -> None:
    facts = {name: event.data[name] for name in PLAN_FIELDS}
    rows.update_step(run, event, action_input=facts, observation=event.data["description"])


def _on_evaluation(rows: Projection, run: int, event: Event) -> None:
    facts = {name: event.data[name] for name in EVALUATION_FIELDS}
    facts |= {name: event.data[name] for name in PANEL_FIELDS if name in event.data}
    rows.update_step(run, event, action_input=facts, observation=event.data["reason"])


def _on_tool_call(rows: Projection, run: int, event: Event) -> None:
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
        rows.add_step(AgentStep(**_step_columns(rows, run, event), **call))
    rows.count(run, tool_calls=1)


def _on_tool_response(rows: Projection, run: int, event: Event) -> None:
    seen = {"observation": event.data["content"], "attempts": event.data["attempts"]}
    if event.data.get("attachments"):
        seen["attachments"] = event.data["attachments"]
    rows.update_step(run, event, **seen)


def _on_status(rows: Projection, run: int, event: Event) -> None:
    """Add a note to a step; a retry is also recorded in the row itself."""
    note = {name: value for name, value in event.data.items() if name not in {"step", "parent"}}
    is_progress = note["kind"] == StatusKind.TOOL_PROGRESS
    for step in rows.steps(run, event):
        # Only the last progress matters; all of it is in the events.
        kept = [n for n in step.notes if not (is_progress and n["kind"] == note["kind"])]
        changes: dict[str, Any] = {"notes": [*kept, note]}
        if note["kind"] == StatusKind.RETRY:
            changes |= {"observation": note["message"], "attempts": note["attempt"]}
        if note["kind"] == StatusKind.MODEL_FALLBACK and step.request:
            changes["request"] = _fallback_request(step.request, note)
        rows.update_step(run, event, **changes)


def _fallback_request(request: Mapping[str, Any], note: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request as sent to the fallback model."""
    fields = {name: value for name, value in request.items() if name != "provider_model"}
    behind = {name: note[name] for name in ("provider_model",) if name in note}
    return {**fields, "model": note["to"], **behind}


def _on_usage(rows: Projection, run: int, event: Event) -> None:
    if event.is_replayed:
        return  # the original run has paid for it
    tokens = {name: event.data[name] for name in ("prompt_tokens", "completion_tokens")}
    cost = event.data["cost"]
    if event.data.get("is_added"):
        _add_usage(rows, run, event, tokens)
    else:
        rows.update_step(run, event, **tokens, cost=cost)
    rows.count(run, **tokens, **({} if cost is None else {"cost": cost}))


def _add_usage(rows: Projection, run: int, event: Event, tokens: dict[str, int]) -> None:
    """Add to the usage of a tool that asks the model several times."""
    cost = event.data["cost"]
    for step in rows.steps(run, event):
        total = {name: getattr(step, name) + count for name, count in tokens.items()}
        spent = step.cost if cost is None else (step.cost or 0) + cost
        rows.update_step(run, event, **total, cost=spent)


def _on_step(rows: Projection, run: int, event: Event) -> None:
    data = event.data
    if "call" in data:
        rows.add_step(_unstarted_step(rows, run, event))
        return
    ended = datetime.fromisoformat(data["ended"]) if "ended" in data else event.time
    changes = {
        "kind": data["kind"],
        "status": _step_status(rows, run, event),
        "ended_at": ended,
    }
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


def _unstarted_step(rows: Projection, run: int, event: Event) -> AgentStep:
    """Return a row for a call that was decided on but not made before the stop."""
    call = event.data["call"]
    return AgentStep(
        **_step_columns(rows, run, event),
        kind=AgentStep.Kind.TOOL,
        status=event.data["status"],
        call_id=call["id"],
        action=call["function"]["name"],
        action_input=decode_json(call["function"]["arguments"]),
        effect=call.get("effect", ""),
        started_at=event.time,
        ended_at=event.time,
    )


def _step_status(rows: Projection, run: int, event: Event) -> str:
    """Return the step's status; a task that a person rejected hasn't failed."""
    kind, status = event.data["kind"], event.data["status"]
    is_in_doubt = kind == AgentStep.Kind.TASK and status == AgentStep.Status.FAILED
    if is_in_doubt and rows.was_declined(run, event.data["step"]):
        return AgentStep.Status.REJECTED
    return status


def _on_guardrail(rows: Projection, run: int, event: Event) -> None:
    details, action = event.data["details"], event.data["action"]
    is_observed = bool(details.get("observed"))
    blocked = action == "block" and not is_observed
    step = AgentStep(
        **_step_columns(rows, run, event),
        kind=AgentStep.Kind.GUARDRAIL,
        status=AgentStep.Status.BLOCKED if blocked else AgentStep.Status.DONE,
        action=OBSERVE_ACTION if is_observed else action,
        action_input={**details, "would": action} if is_observed else details,
        observation=event.data["reason"],
        started_at=event.time,
        ended_at=event.time,
    )
    rows.add_step(step)
    if details.get("id") is not None and not event.is_replayed:
        rows.add_hit(_build_hit(run, event))


def _build_hit(run: int, event: Event) -> GuardrailHit:
    details = event.data["details"]
    return GuardrailHit(
        run_id=run,
        pattern_id=details["id"],
        step=event.data["step"],
        agent_name=event.agent,
        stage=details["stage"],
        action=event.data["action"],
        is_observed=bool(details.get("observed")),
        matches=details["matches"],
        at=event.time,
    )


def _on_error(rows: Projection, run: int, event: Event) -> None:
    rows.steps(run, event).filter(ended_at=None).update(
        status=AgentStep.Status.FAILED, observation=event.data["message"], ended_at=event.time
    )


def _on_run_finished(rows: Projection, run: int, event: Event) -> None:
    reason = StopReason(event.data["stopped_reason"])
    ended = datetime.fromisoformat(event.data["ended"]) if "ended" in event.data else event.time
    rows.update_run(
        run,
        status=STATUS_BY_REASON.get(reason, Run.Status.STOPPED),
        stopped_reason=reason.value,
        answer=event.data["answer"],
        detail=event.data["detail"],
        advice=event.data["advice"],
        output=event.data.get("output"),
        turns=event.data["turns"],
        ended_at=ended,
        seconds=(seconds := max(0.0, (ended - rows.began(run)).total_seconds())),
        waited=min(seconds, waited_seconds(rows.waits(run), ended)),
        marks=rows.marks(run),
    )
    rows.withdraw(run, ended)


def waited_seconds(waits: Iterable[tuple[datetime, datetime | None]], until: datetime) -> float:
    """Return how many seconds people were waited for, counting overlaps once."""
    spans = [
        (requested.timestamp(), (answered or until).timestamp())
        for requested, answered in waits
    ]
    return total_length(union((start, min(end, until.timestamp())) for start, end in spans))


def search_tag(kind: str, name: str) -> str:
    """Return a search tag: a tool by name, a guardrail by action."""
    return f"{kind}={name[:MAX_NAME_CHARS].replace('|', ' ').lower()}"


def _step_tags(kind: str, action: str, status: str) -> Iterator[str]:
    if status == AgentStep.Status.UNSTARTED:
        return
    yield kind
    if kind in {AgentStep.Kind.TOOL, AgentStep.Kind.GUARDRAIL}:
        yield search_tag(kind, action)
    if status == AgentStep.Status.FAILED:
        yield status


@compiled_query
def _step_summaries(run: int) -> QuerySet[AgentStep, tuple[str, str, str]]:
    return AgentStep.objects.filter(run=run).values_list("kind", "action", "status")


@compiled_query
def _approval_times(run: int) -> QuerySet[Approval, tuple[datetime, datetime | None]]:
    asked = Approval.objects.filter(run=run, granted_scope="")  # the others were automatic
    return asked.values_list("asked_at", "decided_at")


@compiled_query
def _start_times(pk: int) -> QuerySet[Run, datetime]:
    return Run.objects.filter(pk=pk).values_list("started_at", flat=True)


def _step_columns(rows: Projection, run: int, event: Event) -> dict[str, Any]:
    """Return the columns that every new step has."""
    parent = event.data.get("parent")
    return {
        "run_id": run,
        "number": event.data["step"],
        "turn": event.data["turn"],
        "agent_name": event.agent,
        "first_seq": event.seq,
        "parent": parent,
        "depth": 0 if parent is None else rows.depth(run, parent) + 1,
    }


HANDLERS = {
    EventType.RUN_STARTED: _on_run_started,
    EventType.STEP_STARTED: _on_step_started,
    EventType.TASK: _on_task,
    EventType.PLAN: _on_plan,
    EventType.EVALUATION: _on_evaluation,
    EventType.TOOL_CALL: _on_tool_call,
    EventType.TOOL_RESPONSE: _on_tool_response,
    EventType.STATUS: _on_status,
    EventType.USAGE: _on_usage,
    EventType.STEP: _on_step,
    EventType.GUARDRAIL: _on_guardrail,
    EventType.ERROR: _on_error,
    EventType.APPROVAL_REQUESTED: _on_approval_requested,
    EventType.APPROVAL_RESOLVED: _on_approval_resolved,
    EventType.RUN_PAUSED: _on_run_paused,
    EventType.RUN_FINISHED: _on_run_finished,
}
