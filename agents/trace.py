"""Events → rows. The events are the truth; a step is what they say of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import F, Max

from agents.engine.events import Event, Stamp, Type
from agents.engine.state import INTERRUPTED, Message, legal
from agents.engine.termination import StopReason
from agents.models import AgentStep, Run, RunEvent

STATUS_OF = {
    StopReason.COMPLETED: Run.Status.COMPLETED,
    StopReason.DEGRADED: Run.Status.COMPLETED,
    StopReason.BLOCKED: Run.Status.BLOCKED,
    StopReason.ERROR: Run.Status.FAILED,
    StopReason.INTERRUPTED: Run.Status.INTERRUPTED,
}

MOST_LEVELS = 100


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run is ended from outside, in a word and in a sentence."""

    reason: StopReason
    detail: str = ""
    advice: str = ""


def keep(entries: Sequence[tuple[int, Event]]) -> None:
    """Write events of any runs, and what they mean for their steps."""
    RunEvent.objects.bulk_create(
        RunEvent(
            run_id=run,
            seq=event.seq,
            type=event.type.value,
            agent=event.agent,
            time=event.time,
            data=event.data,
        )
        for run, event in entries
    )
    for run, event in entries:
        if (meaning := MEANING.get(event.type)) is not None:
            meaning(run, event)


def close(run_pk: int, ending: Ending) -> list[Event]:
    """End a run that cannot end itself, and give the events that say so."""
    run = Run.objects.live().filter(pk=run_pk).first()
    if run is None:
        return []
    emit = partial(Stamp(run.agent_name, after=last_seq(run)), **_ended(run, ending))
    events = [_ended_step(emit, run, step, ending) for step in run.steps.filter(ended_at=None)]
    events.append(
        emit(
            Type.RUN_FINISHED,
            answer=said_so_far(run),
            stopped_reason=ending.reason.value,
            detail=ending.detail,
            advice=ending.advice,
            turns=run.steps.aggregate(Max("turn"))["turn__max"] or 0,
            tool_calls=run.steps.filter(kind=AgentStep.Kind.TOOL).count(),
        )
    )
    keep([(run_pk, event) for event in events])
    return events


def last_seq(run: Run) -> int:
    return run.events.aggregate(Max("seq"))["seq__max"] or 0


def said_so_far(run: Run, until: int | None = None) -> str:
    """The answer as far as it was streamed: what was said since the last thought."""
    events = run.events.filter(type__in=[Type.DELTA, Type.THOUGHT])
    if until is not None:
        events = events.filter(seq__lte=until)
    text: list[str] = []
    for type, data in events.order_by("seq").values_list("type", "data"):
        if type == Type.THOUGHT:
            text.clear()
        else:
            text.append(data["content"])
    return "".join(text)


def thought_so_far(run: Run, step: AgentStep, until: int | None = None) -> str:
    events = run.events.filter(type=Type.THOUGHT_DELTA, seq__gte=step.first_seq)
    if until is not None:
        events = events.filter(seq__lte=until)
    return "".join(
        data["content"] for data in events.order_by("seq").values_list("data", flat=True)
    )


def transcript(run: Run) -> list[Message]:
    """The run as a model is told of it afterwards: always a whole exchange, or nothing."""
    if run.status == Run.Status.BLOCKED:
        return []
    messages: list[Message] = [{"role": "user", "content": run.query}]
    calls: list[AgentStep] = []
    for step in [*run.steps.filter(kind=AgentStep.Kind.TOOL), None]:
        if calls and (step is None or step.turn != calls[0].turn):
            messages += _exchange(calls)
            calls = []
        if step is not None:
            calls.append(step)
    messages.append({"role": "assistant", "content": run.answer or _no_answer(run)})
    return legal(messages)


def decoded(text: str) -> Any:
    """JSON as data where it can be kept and shown as such, which NaN and abysses cannot."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return text
    return text if _is_deeper(value, MOST_LEVELS) else value


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


def _exchange(calls: Sequence[AgentStep]) -> list[Message]:
    asked = [
        {
            "id": step.call_id,
            "type": "function",
            "function": {"name": step.action, "arguments": json.dumps(_object(step))},
        }
        for step in calls
    ]
    answers = [
        {"role": "tool", "tool_call_id": step.call_id, "content": _seen(step)} for step in calls
    ]
    return [{"role": "assistant", "content": None, "tool_calls": asked}, *answers]


def _object(step: AgentStep) -> dict[str, Any]:
    return step.action_input if isinstance(step.action_input, dict) else {}


def _seen(step: AgentStep) -> str:
    is_whole = step.observation or step.status == AgentStep.Status.DONE
    return step.observation if is_whole else INTERRUPTED


def _no_answer(run: Run) -> str:
    return f"(No answer: {run.detail or run.stopped_reason})"


def _ended(run: Run, ending: Ending) -> dict[str, str]:
    """When it ended: now, or, where its server had gone, when it was last heard of."""
    last = run.events.order_by("-seq").first()
    if ending.reason is not StopReason.INTERRUPTED or last is None:
        return {}
    return {"ended": last.time.isoformat()}


def _ended_step(emit: Callable[..., Event], run: Run, step: AgentStep, ending: Ending) -> Event:
    interrupted = ending.reason is StopReason.INTERRUPTED and step.kind == AgentStep.Kind.TOOL
    status = AgentStep.Status.UNKNOWN if interrupted else AgentStep.Status.CANCELLED
    if ending.reason is StopReason.ERROR:
        status = AgentStep.Status.FAILED
    return emit(
        Type.STEP,
        step=step.number,
        kind=step.kind,
        status=status.value,
        thought=step.thought or thought_so_far(run, step),
    )


# What each event means for the rows


def _step_started(run: int, event: Event) -> None:
    AgentStep.objects.create(
        run_id=run,
        number=event.data["step"],
        turn=event.data["turn"],
        kind=event.data["kind"],
        request=event.data["request"],
        agent_name=event.agent,
        first_seq=event.seq,
        started_at=event.time,
    )
    Run.objects.filter(pk=run).update(turns=event.data["turn"])


def _tool_called(run: int, event: Event) -> None:
    function = event.data["function"]
    AgentStep.objects.create(
        run_id=run,
        number=event.data["step"],
        turn=event.data["turn"],
        kind=AgentStep.Kind.TOOL,
        call_id=event.data["id"],
        action=function["name"],
        action_input=decoded(function["arguments"]),
        agent_name=event.agent,
        first_seq=event.seq,
        started_at=datetime.fromisoformat(event.data["started"]),
    )
    Run.objects.filter(pk=run).update(tool_calls=F("tool_calls") + 1)


def _tool_responded(run: int, event: Event) -> None:
    _step(run, event).update(observation=event.data["content"], attempts=event.data["attempts"])


def _told(run: int, event: Event) -> None:
    if event.data["kind"] == "retry":
        _step(run, event).update(
            observation=event.data["message"], attempts=event.data["attempt"]
        )


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
        run_id=run,
        number=event.data["step"],
        turn=event.data["turn"],
        kind=AgentStep.Kind.GUARDRAIL,
        status=AgentStep.Status.BLOCKED if blocked else AgentStep.Status.DONE,
        action=event.data["action"],
        action_input=event.data["details"],
        observation=event.data["reason"],
        agent_name=event.agent,
        first_seq=event.seq,
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
        turns=event.data["turns"],
        tool_calls=event.data["tool_calls"],
        ended_at=ended,
    )


def _step(run: int, event: Event):
    return AgentStep.objects.filter(run=run, number=event.data["step"])


MEANING = {
    Type.STEP_STARTED: _step_started,
    Type.TOOL_CALL: _tool_called,
    Type.TOOL_RESPONSE: _tool_responded,
    Type.STATUS: _told,
    Type.USAGE: _used,
    Type.STEP: _step_ended,
    Type.GUARDRAIL: _guarded,
    Type.ERROR: _failed,
    Type.RUN_FINISHED: _finished,
}
