"""What each event means for the rows. The events are the truth; a step is what they say."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from agents.db.compiled_queries import prepared
from agents.db.fast_writes import More, update
from agents.engine.events import Event, Type
from agents.engine.loop.termination import StopReason
from agents.models import AgentStep, Approval, GuardrailHit, Run

from .intervals import length, union

STATUS_OF = {
    StopReason.COMPLETED: Run.Status.COMPLETED,
    StopReason.DEGRADED: Run.Status.COMPLETED,
    StopReason.BLOCKED: Run.Status.BLOCKED,
    StopReason.ERROR: Run.Status.FAILED,
    StopReason.INTERRUPTED: Run.Status.INTERRUPTED,
}

# What of the beginning of a run says how it was set up.
SETUP = ("model", "dialect", "instructions", "tools", "max_steps")
ABOUT_A_TASK = ("plan", "work", "what", "expected", "is_each")
ABOUT_A_PLAN = ("plan", "description", "steps", "parameters", "by", "changes", "feedback")
ABOUT_A_CHECK = ("plan", "expected", "is_met", "reason", "feedback")
ABOUT_A_PANEL = ("merge", "heads", "groups", "chosen", "differences")
FOUND_BY_ITSELF = {AgentStep.Kind.TASK, AgentStep.Kind.PLAN, AgentStep.Kind.EVALUATION}
GIVEN_UP = {
    AgentStep.Status.CANCELLED,
    AgentStep.Status.UNKNOWN,
    AgentStep.Status.UNSTARTED,
}
VERSION = 8
MOST_MARKS = 100
MOST_NAME = 64
MOST_ROLE = 150
MOST_LEVELS = 100
OBSERVED = "observe"
NUL = "\\u0000"


class Rows:
    """What events mean for runs and steps, gathered: each row is written once a batch."""

    def __init__(self) -> None:
        self._runs: dict[int, dict[str, Any]] = {}
        self._steps: dict[tuple[int, int], dict[str, Any]] = {}
        self._new_steps: dict[tuple[int, int], AgentStep] = {}
        self._new_hits: list[GuardrailHit] = []

    def take(self, run: int, event: Event) -> None:
        if (meaning := MEANING.get(event.type)) is not None:
            meaning(self, run, event)

    def change_run(self, run: int, **changes: Any) -> None:
        self._runs.setdefault(run, {}).update(changes)

    def count(self, run: int, **amounts: float) -> None:
        changes = self._runs.setdefault(run, {})
        for name, amount in amounts.items():
            changes[name] = changes.get(name, More(0)) + More(amount)

    def add_step(self, step: AgentStep) -> None:
        self._new_steps[step.run_id, step.number] = step

    def add_hit(self, hit: GuardrailHit) -> None:
        self._new_hits.append(hit)

    def change_step(self, run: int, event: Event, **changes: Any) -> None:
        place = run, event.data["step"]
        if (step := self._new_steps.get(place)) is not None:
            vars(step).update(changes)
        else:
            self._steps.setdefault(place, {}).update(changes)

    def steps(self, run: int, event: Event) -> QuerySet[AgentStep]:
        """The step as it is by now, for those who have to look at it first."""
        self._write_steps()
        return AgentStep.objects.filter(run=run, number=event.data["step"])

    def marks(self, run: int) -> str:
        """What its steps are found by, in one line: to look through all of them takes long."""
        self._write_steps()
        found = {mark for step in _kinds(run) for mark in _marks(*step)}
        return f"|{'|'.join(sorted(found)[:MOST_MARKS])}|"

    def was_declined(self, run: int, number: int) -> bool:
        """Whether a person's no is all that a step came to nothing by."""
        self._write_steps()
        parts = AgentStep.objects.filter(run=run, parent=number)
        found = set(parts.values_list("status", flat=True))
        return AgentStep.Status.REJECTED in found and AgentStep.Status.FAILED not in found

    def depth(self, run: int, number: int) -> int:
        if (step := self._new_steps.get((run, number))) is not None:
            return step.depth
        return AgentStep.objects.values_list("depth", flat=True).get(run=run, number=number)

    def began(self, run: int) -> datetime:
        return _began(run)[0]

    def waits(self, run: int) -> Iterable[tuple[datetime, datetime | None]]:
        """When people were asked, and when they answered."""
        return _waits(run)

    def ask(self, run: int, step: int, question: dict[str, Any]) -> None:
        Approval.objects.update_or_create(question, run_id=run, step=step)

    def decide(self, run: int, step: int, **word: Any) -> None:
        Approval.objects.filter(run=run, step=step).update(**word)

    def withdraw(self, run: int, at: datetime, **which: Any) -> None:
        """Nobody has to answer any more: the answer would change nothing."""
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


def _run_started(rows: Rows, run: int, event: Event) -> None:
    rows.change_run(run, road=event.data.get("road", ""), version=version(event.data))


def version(started: Mapping[str, Any]) -> str:
    """A short name for what a run was set up with: the same for runs set up alike."""
    setup = {name: started.get(name) for name in SETUP}
    text = json.dumps(setup, sort_keys=True, ensure_ascii=False, default=str)
    return sha256(text.encode(errors="replace")).hexdigest()[:VERSION]


def _step_started(rows: Rows, run: int, event: Event) -> None:
    step = AgentStep(
        **_place(rows, run, event),
        kind=event.data["kind"],
        request=event.data["request"],
        started_at=event.time,
    )
    rows.add_step(step)
    if "parent" not in event.data:
        rows.change_run(run, turns=event.data["turn"])


def _asked(rows: Rows, run: int, event: Event) -> None:
    """A call that waits: its row is there already, and is the one that shows the question."""
    function = event.data["function"]
    call = {
        "kind": event.data.get("kind", AgentStep.Kind.TOOL),
        "status": AgentStep.Status.WAITING,
        "thought": event.data["thought"],
        "call_id": event.data["id"],
        "action": function["name"],
        "action_input": decoded(function["arguments"]),
        "started_at": event.time,
    }
    if event.data.get("effect"):
        call["effect"] = event.data["effect"]
    if call["kind"] == AgentStep.Kind.PLAN:  # its row says already what it is, and since when
        call = {name: call[name] for name in ("status", "call_id")}
    if not rows.steps(run, event).update(**call):
        rows.add_step(AgentStep(**_place(rows, run, event), **call))
    question = {
        "agent_name": event.agent,
        "call_id": event.data["id"],
        "tool": function["name"],
        "arguments": function["arguments"],
        "digest": event.data["digest"],
        "why": event.data["why"],
        "role": event.data.get("role", "")[:MOST_ROLE],
        "verdict": Approval.Verdict.WAITING,
        "asked_at": event.time,
        # It may be asked again: what was said to the question before is in the events.
        "new_arguments": "",
        "reason": "",
        "decided_by": None,
        "decided_at": None,
    }
    rows.ask(run, event.data["step"], question)


def _decided(rows: Rows, run: int, event: Event) -> None:
    changed = event.data["arguments"] is not None
    approved = Approval.Verdict.EDITED if changed else Approval.Verdict.APPROVED
    rows.decide(
        run,
        event.data["step"],
        verdict=approved if event.data["is_approved"] else Approval.Verdict.REJECTED,
        new_arguments=event.data["arguments"] or "",
        reason=event.data["reason"],
        decided_by=_somebody(event.data["by"]),
        decided_at=event.time,
    )


def _somebody(pk: int | None) -> int | None:
    """This person; nobody, where their account is gone by the time it is told again."""
    return pk if get_user_model().objects.filter(pk=pk).exists() else None


def _paused(rows: Rows, run: int, event: Event) -> None:
    if not event.is_replayed:
        rows.change_run(run, status=Run.Status.WAITING)


def _task_begun(rows: Rows, run: int, event: Event) -> None:
    """A step of a plan, the plan itself, or a check: a row under which the work for it is."""
    about = {name: event.data[name] for name in ABOUT_A_TASK if event.data.get(name)}
    step = AgentStep(
        **_place(rows, run, event),
        kind=event.data["kind"],
        action=event.data["name"],
        action_input=about,
        started_at=event.time,
    )
    rows.add_step(step)
    if event.data["kind"] == AgentStep.Kind.TASK and "parent" not in event.data:
        rows.count(run, tasks=1)


def _planned(rows: Rows, run: int, event: Event) -> None:
    facts = {name: event.data[name] for name in ABOUT_A_PLAN}
    rows.change_step(run, event, action_input=facts, observation=event.data["description"])


def _checked(rows: Rows, run: int, event: Event) -> None:
    facts = {name: event.data[name] for name in ABOUT_A_CHECK}
    facts |= {name: event.data[name] for name in ABOUT_A_PANEL if name in event.data}
    rows.change_step(run, event, action_input=facts, observation=event.data["reason"])


def _tool_called(rows: Rows, run: int, event: Event) -> None:
    function = event.data["function"]
    call = {
        "kind": AgentStep.Kind.TOOL,
        "status": AgentStep.Status.RUNNING,
        "call_id": event.data["id"],
        "action": function["name"],
        "action_input": decoded(function["arguments"]),
        "effect": event.data.get("effect", ""),
        "started_at": datetime.fromisoformat(event.data["started"]),
    }
    if not rows.steps(run, event).update(**call):
        rows.add_step(AgentStep(**_place(rows, run, event), **call))
    rows.count(run, tool_calls=1)


def _tool_responded(rows: Rows, run: int, event: Event) -> None:
    seen = {"observation": event.data["content"], "attempts": event.data["attempts"]}
    rows.change_step(run, event, **seen)


def _told(rows: Rows, run: int, event: Event) -> None:
    """Notes of a step; where a model is asked again, the row itself says why."""
    note = {name: value for name, value in event.data.items() if name not in {"step", "parent"}}
    for step in rows.steps(run, event):
        changes = {"notes": [*step.notes, note]}
        if note["kind"] == "retry":
            changes |= {"observation": note["message"], "attempts": note["attempt"]}
        if note["kind"] == "model_fallback" and step.request:
            changes["request"] = _of_another(step.request, note)
        rows.change_step(run, event, **changes)


def _of_another(request: Mapping[str, Any], note: Mapping[str, Any]) -> dict[str, Any]:
    """The request as it was put to the model that took over."""
    kept = {name: value for name, value in request.items() if name != "provider_model"}
    behind = {name: note[name] for name in ("provider_model",) if name in note}
    return {**kept, "model": note["to"], **behind}


def _used(rows: Rows, run: int, event: Event) -> None:
    if event.is_replayed:
        return  # the run that it happened in has paid for it
    tokens = {name: event.data[name] for name in ("prompt_tokens", "completion_tokens")}
    cost = event.data["cost"]
    rows.change_step(run, event, **tokens, cost=cost)
    rows.count(run, **tokens, **({} if cost is None else {"cost": cost}))


def _step_ended(rows: Rows, run: int, event: Event) -> None:
    data = event.data
    if "call" in data:
        rows.add_step(_never_started(rows, run, event))
        return
    ended = datetime.fromisoformat(data["ended"]) if "ended" in data else event.time
    changes = {"kind": data["kind"], "status": _fate(rows, run, event), "ended_at": ended}
    if data.get("thought"):
        changes["thought"] = data["thought"]
    if data.get("called"):
        changes["action"] = data["action"]  # another tool did it in the place of that one
    if data["kind"] in FOUND_BY_ITSELF:
        changes["observation"] = data.get("observation", "")
    elif data.get("error"):
        changes["observation"] = data["error"]
    elif data["status"] == AgentStep.Status.DONE and data["kind"] != AgentStep.Kind.TOOL:
        changes["observation"] = ""  # what an attempt before it failed of
    rows.change_step(run, event, **changes)
    if data["status"] in GIVEN_UP:
        rows.withdraw(run, ended, step=data["step"])


def _never_started(rows: Rows, run: int, event: Event) -> AgentStep:
    """A call that the model decided on, and that was not made before the run was stopped."""
    call = event.data["call"]
    return AgentStep(
        **_place(rows, run, event),
        kind=AgentStep.Kind.TOOL,
        status=event.data["status"],
        call_id=call["id"],
        action=call["function"]["name"],
        action_input=decoded(call["function"]["arguments"]),
        effect=call.get("effect", ""),
        started_at=event.time,
        ended_at=event.time,
    )


def _fate(rows: Rows, run: int, event: Event) -> str:
    """As it is told; but what a person did not agree to has not failed for the reader."""
    kind, status = event.data["kind"], event.data["status"]
    is_in_doubt = kind == AgentStep.Kind.TASK and status == AgentStep.Status.FAILED
    if is_in_doubt and rows.was_declined(run, event.data["step"]):
        return AgentStep.Status.REJECTED
    return status


def _guarded(rows: Rows, run: int, event: Event) -> None:
    details, action = event.data["details"], event.data["action"]
    is_observed = bool(details.get("observed"))
    blocked = action == "block" and not is_observed
    step = AgentStep(
        **_place(rows, run, event),
        kind=AgentStep.Kind.GUARDRAIL,
        status=AgentStep.Status.BLOCKED if blocked else AgentStep.Status.DONE,
        action=OBSERVED if is_observed else action,
        action_input={**details, "would": action} if is_observed else details,
        observation=event.data["reason"],
        started_at=event.time,
        ended_at=event.time,
    )
    rows.add_step(step)
    if details.get("id") is not None and not event.is_replayed:
        rows.add_hit(_hit(run, event))


def _hit(run: int, event: Event) -> GuardrailHit:
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


def _failed(rows: Rows, run: int, event: Event) -> None:
    rows.steps(run, event).filter(ended_at=None).update(
        status=AgentStep.Status.FAILED, observation=event.data["message"], ended_at=event.time
    )


def _finished(rows: Rows, run: int, event: Event) -> None:
    reason = StopReason(event.data["stopped_reason"])
    ended = datetime.fromisoformat(event.data["ended"]) if "ended" in event.data else event.time
    rows.change_run(
        run,
        status=STATUS_OF.get(reason, Run.Status.STOPPED),
        stopped_reason=reason.value,
        answer=event.data["answer"],
        detail=event.data["detail"],
        advice=event.data["advice"],
        output=event.data.get("output"),
        turns=event.data["turns"],
        ended_at=ended,
        seconds=(seconds := max(0.0, (ended - rows.began(run)).total_seconds())),
        waited=min(seconds, waited(rows.waits(run), ended)),
        marks=rows.marks(run),
    )
    rows.withdraw(run, ended)


def waited(waits: Iterable[tuple[datetime, datetime | None]], until: datetime) -> float:
    """For how many seconds people were waited for; each moment counts once."""
    spans = [(asked.timestamp(), (said or until).timestamp()) for asked, said in waits]
    return length(union((start, min(end, until.timestamp())) for start, end in spans))


def mark(kind: str, name: str) -> str:
    """A tool by its name, a guardrail by what it did."""
    return f"{kind}={name[:MOST_NAME].replace('|', ' ').lower()}"


def _marks(kind: str, action: str, status: str) -> Iterator[str]:
    if status == AgentStep.Status.UNSTARTED:
        return
    yield kind
    if kind in {AgentStep.Kind.TOOL, AgentStep.Kind.GUARDRAIL}:
        yield mark(kind, action)
    if status == AgentStep.Status.FAILED:
        yield status


@prepared
def _kinds(run):
    return AgentStep.objects.filter(run=run).values_list("kind", "action", "status")


@prepared
def _waits(run):
    return Approval.objects.filter(run=run).values_list("asked_at", "decided_at")


@prepared
def _began(pk):
    return Run.objects.filter(pk=pk).values_list("started_at", flat=True)


def _place(rows: Rows, run: int, event: Event) -> dict[str, Any]:
    """What every new row of a step has: its number, whose it is, and what it is a part of."""
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


MEANING = {
    Type.RUN_STARTED: _run_started,
    Type.STEP_STARTED: _step_started,
    Type.TASK: _task_begun,
    Type.PLAN: _planned,
    Type.EVALUATION: _checked,
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
