"""Saves events as rows, and reads rows back as text for people and models."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Min, QuerySet
from django.db.models.functions import Left, Length

from agents.db.compiled_queries import compiled_query
from agents.db.fast_writes import concrete_field
from agents.db.raw_cursor import adapt_datetime, adapt_json, execute_many
from agents.db.sanitize import sanitize_event
from agents.engine import attachments
from agents.engine.events import DELTA_TYPES, Event, EventFactory, EventType, StatusKind
from agents.engine.loop import AskPersonTool, CallOutcome, StopReason
from agents.engine.privacy import Redactor
from agents.engine.state import INTERRUPTED, NOT_STARTED, Message, repair_history
from agents.models import Agent, AgentStep, Approval, Run, RunEvent

from . import clocks
from .projection import Projection, search_tag

PREVIEW_CHARS = 200
DECISION_TYPES = (
    EventType.STEP,
    EventType.TOOL_CALL,
    EventType.APPROVAL_REQUESTED,
    EventType.HANDOFF_RETURN,
)
CORRECTION_NOTE = "(A reviewer has corrected this answer. It should have been the following.)"
NOT_RESENT = "from an earlier question, not sent again"
MAX_OBSERVATION_CHARS = 2000
USER_DEACTIVATED = "The account of the user who asked was disabled."
CANCELLED, UNKNOWN = CallOutcome(status="cancelled"), CallOutcome(status="unknown")
UNSTARTED, FAILED = CallOutcome(status="unstarted"), CallOutcome(status="failed")


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run is ended from outside, as a code and a sentence.

    `fates` are the outcomes of running calls, by step. Those of other calls are known only if
    their owner has obeyed: `is_sure`.
    """

    reason: StopReason
    detail: str = ""
    advice: str = ""
    outcomes: Mapping[int, CallOutcome] = field(default_factory=dict)
    is_sure: bool = True

    def outcome(self, step: AgentStep, why: str = "") -> CallOutcome:
        """Return the outcome of a step; `why` is the reason of its approval request, if any."""
        if why == Approval.Why.UNKNOWN:
            return UNKNOWN  # it was started once, and its outcome is still unknown
        is_call = step.kind == AgentStep.Kind.TOOL
        is_asking = why == Approval.Why.ELICITATION  # so it runs
        if is_call and why and not is_asking and step.action != AskPersonTool.name:
            return UNSTARTED
        if step.number in self.outcomes:
            return self.outcomes[step.number]
        is_running = step.is_live or is_asking
        if self.reason is StopReason.ERROR:
            return UNKNOWN if is_running and step.has_effects else FAILED
        is_sure = self.is_sure and self.reason is not StopReason.INTERRUPTED
        is_harmless = is_sure or step.effect == AgentStep.Effect.READ
        return UNKNOWN if is_call and is_running and not is_harmless else CANCELLED


def save(entries: Sequence[tuple[int, Event]]) -> None:
    """Insert events of any runs and apply them to runs and steps."""
    wrapper = connections[DEFAULT_DB_ALIAS]  # looked up once; each thread has its own
    execute_many(wrapper, _insert_sql(), [_column_values(wrapper, *entry) for entry in entries])
    projection = Projection()
    for run, event in entries:
        projection.take(run, event)
    projection.write()


@cache
def _insert_sql() -> str:
    """Return the INSERT statement, built once because there are many events."""
    quote = connection.ops.quote_name
    names = ("run", "seq", "type", "agent", "time", "data")
    columns = ", ".join(quote(str(concrete_field(RunEvent, name).column)) for name in names)
    placeholders = ", ".join(["%s"] * len(names))
    return f"INSERT INTO {quote(RunEvent._meta.db_table)} ({columns}) VALUES ({placeholders})"


def _column_values(wrapper: BaseDatabaseWrapper, run: int, event: Event) -> tuple[Any, ...]:
    time = adapt_datetime(wrapper, event.time)
    data = adapt_json(wrapper, event.data)
    return run, event.seq, event.type.value, event.agent, time, data


@transaction.atomic
def close(run_pk: int, ending: Ending, epoch: int | None = None) -> list[Event]:
    """End a run that can't end itself, and return the events.

    With an epoch, only if the run still has it: another process may own the run now.
    """
    run = Run.objects.live().select_for_update().filter(pk=run_pk).first()
    if run is None or epoch not in (None, run.epoch):
        return []
    emit = partial(event_factory(run, run.agent_name), **_end_fields(run, ending))
    if run.is_waiting:
        ending = replace(ending, is_sure=True)  # nothing runs while an approval is pending
    requested = dict(
        run.approvals.filter(verdict=Approval.Verdict.WAITING).values_list("step", "why")
    )
    live, calls = (
        run.steps.filter(ended_at=None),
        run.steps.filter(kind=AgentStep.Kind.TOOL).count(),
    )
    events = [
        event
        for step in live
        for event in _closing_events(emit, run, step, ending, requested.get(step.number, ""))
    ]
    events += _unstarted_events(emit, run)
    events.append(
        emit(
            EventType.RUN_FINISHED,
            answer=streamed_answer(run),
            stopped_reason=ending.reason.value,
            detail=ending.detail or _stop_detail(run, ending),
            advice=ending.advice,
            turns=run.turns,
            tool_calls=calls,
        )
    )
    events = [sanitize_event(event) for event in _redact(run, events)]
    save([(run_pk, event) for event in events])
    return events


def event_factory(run: Run, agent: str) -> EventFactory:
    """Return a factory for events added from outside, with the run's clock."""
    last = run.events.order_by("-seq").first()
    factory = EventFactory(agent, after=last.seq if last else 0)
    factory.clock = clocks.get_clock(run.pk)
    if last is not None:
        factory.clock.advance_to(last.time)
    return factory


def _redact(run: Run, events: list[Event]) -> list[Event]:
    """Redact late tool results too, if the agent stores no personal data."""
    if run.agent is None or run.agent.personal_data != Agent.PersonalData.UNKEPT:
        return events
    return list(map(Redactor().event, events))


def _stop_detail(run: Run, ending: Ending) -> str:
    """Return the detail of a stop: that the user's account was deactivated, or nothing."""
    is_stopped = ending.reason is StopReason.CANCELLED
    is_deactivated = run.user is not None and not run.user.is_active
    return USER_DEACTIVATED if is_stopped and is_deactivated else ""


def last_seq(run: Run) -> int:
    return next(iter(_last_seq(run.pk)), 0)


@compiled_query
def _last_seq(run: int) -> QuerySet[RunEvent, int]:
    events = RunEvent.objects.filter(run=run).order_by("-seq")
    return events.values_list("seq", flat=True)[:1]


def last_speaker(run: Run) -> str:
    """Return the agent of the last event that isn't a delta."""
    return next(iter(_last_speaker(run.pk)), "")


@compiled_query
def _last_speaker(run: int) -> QuerySet[RunEvent, str]:
    events = RunEvent.objects.filter(run=run).exclude(type__in=DELTA_TYPES).order_by("-seq")
    return events.values_list("agent", flat=True)[:1]


def brief_steps(
    run: Run, most: int = MAX_OBSERVATION_CHARS, without: Sequence[str] = ("request",)
) -> list[AgentStep]:
    """Return all steps without their requests and with shortened observations.

    A run can have 20 MB of results; opening a step loads the rest.
    """
    annotated = run.steps.defer("observation", *without).annotate(
        found=Left("observation", most), found_size=Length("observation")
    )
    steps: list[AgentStep] = []
    for step in annotated:
        step.observation = step.found
        steps.append(step)
    return steps


def first_delta_times(run: Run) -> dict[int, datetime]:
    """Return the time of each step's first token."""
    deltas = run.events.filter(type__in=[EventType.DELTA, EventType.THOUGHT_DELTA])
    firsts = deltas.order_by().values_list("data__step").annotate(first=Min("time"))
    return {step: first for step, first in firsts if step is not None}


def streamed_answer(run: Run, until: int | None = None) -> str:
    """Return the answer as streamed so far: the text since the last thought."""
    events = run.events.filter(type__in=[EventType.DELTA, EventType.THOUGHT])
    if until is not None:
        events = events.filter(seq__lte=until)
    text: list[str] = []
    for type, data in events.order_by("seq").values_list("type", "data"):
        if "parent" in data:
            continue  # text for another agent isn't the answer
        if type == EventType.THOUGHT:
            text.clear()
        else:
            text.append(data["content"])
    return "".join(text)


def streamed_thought(run: Run, step: AgentStep, until: int | None = None) -> str:
    """Return a step's streamed text, including an answer to another agent."""
    kinds = (
        [EventType.THOUGHT_DELTA]
        if step.parent is None
        else [EventType.THOUGHT_DELTA, EventType.DELTA]
    )
    events = run.events.filter(type__in=kinds, seq__gte=step.first_seq)
    if until is not None:
        events = events.filter(seq__lte=until)
    deltas = events.order_by("seq").values_list("data", flat=True)
    return "".join(data["content"] for data in deltas if data["step"] == step.number)


def transcript(run: Run) -> list[Message]:
    """Return the run as history messages: a whole exchange, or nothing."""
    if run.status == Run.Status.BLOCKED:
        return []
    files: Message = {"files": run.files} if run.files else {}
    messages: list[Message] = [{"role": "user", "content": _question(run), **files}]
    calls: list[AgentStep] = []
    used = run.steps.filter(kind=AgentStep.Kind.TOOL, parent=None) if run.tool_calls else ()
    for step in [*used, None]:
        if calls and (step is None or step.turn != calls[0].turn):
            messages += _tool_messages(calls)
            calls = []
        if step is not None:
            calls.append(step)
    messages.append({"role": "assistant", "content": _final_answer(run)})
    return repair_history(messages)


def _question(run: Run) -> str:
    """Return the question as the model got it, with its masks."""
    if search_tag(AgentStep.Kind.GUARDRAIL, "mask") not in run.step_types:
        return run.query
    masks = run.steps.filter(kind=AgentStep.Kind.GUARDRAIL, action="mask", parent=None)
    texts = (step.action_input.get("text") for step in masks if step.action_input)
    return next((text for text in texts if text is not None), run.query)


def _final_answer(run: Run) -> str:
    """Return the answer with a reviewer's correction."""
    answer, review = run.answer or _no_answer(run), getattr(run, "review", None)
    if review is None or not review.correction:
        return answer
    return f"{answer}\n\n{CORRECTION_NOTE}\n\n{review.correction}"


def _tool_messages(calls: Sequence[AgentStep]) -> list[Message]:
    tool_calls = [
        {
            "id": step.call_id,
            "type": "function",
            "function": {"name": step.action, "arguments": json.dumps(_arguments(step))},
        }
        for step in calls
    ]
    answers = [
        {
            "role": "tool",
            "tool_call_id": step.call_id,
            "content": _tool_result(step),
            **_provenance(step),
        }
        for step in calls
    ]
    return [{"role": "assistant", "content": None, "tool_calls": tool_calls}, *answers]


def _provenance(step: AgentStep) -> dict[str, Any]:
    """Return what later runs need to know about a result: its passages, and its trust."""
    if not step.is_untrusted:
        return {}
    kinds = {note.get("kind") for note in step.notes}
    provenance = {
        "sources": step.sources,
        "is_suspect": StatusKind.EMBEDDED_INSTRUCTIONS in kinds,
    }
    return {"untrusted": step.action, **{k: v for k, v in provenance.items() if v}}


def _arguments(step: AgentStep) -> dict[str, Any]:
    return step.action_input if isinstance(step.action_input, dict) else {}


def _tool_result(step: AgentStep) -> str:
    is_whole = step.observation or step.status == AgentStep.Status.DONE
    missing = NOT_STARTED if step.status == AgentStep.Status.UNSTARTED else INTERRUPTED
    text = step.observation if is_whole else missing
    for ref in step.attachments:
        if not ref.get("problem"):
            text = attachments.explain(text, attachments.placeholder(ref), NOT_RESENT)
    return text


def _no_answer(run: Run) -> str:
    return f"(No answer: {run.detail or run.stopped_reason})"


def _end_fields(run: Run, ending: Ending) -> dict[str, str]:
    """Return the end time: now or, if the server died, the time of the last event."""
    last = run.events.order_by("-seq").first()
    if ending.reason is not StopReason.INTERRUPTED or last is None:
        return {}
    return {"ended": last.time.isoformat()}


def _unstarted_events(emit: Callable[..., Event], run: Run) -> Iterator[Event]:
    """Yield events for calls that were decided on but never started."""
    if not (calls := _pending_calls(run)):
        return
    turns = dict(run.steps.values_list("number", "turn"))
    for number, (step, parent, call) in enumerate(calls, max(turns) + 1):
        parent_field = {} if parent is None else {"parent": parent}
        fields = {"kind": "tool", "status": "unstarted", "turn": turns[step], "call": call}
        yield emit(EventType.STEP, step=number, **fields, **parent_field)


def _pending_calls(run: Run) -> list[tuple[int, int | None, dict[str, Any]]]:
    """Return pending calls of all agents: the step that decided, its parent, and the call."""
    decided: dict[int | None, dict[str, Any]] = {}
    events = run.events.filter(type__in=DECISION_TYPES).order_by("seq")
    for type, data in events.values_list("type", "data"):
        parent = data.get("parent")
        if type == EventType.HANDOFF_RETURN:
            decided.pop(parent, None)
        elif type != EventType.STEP:
            decided.get(parent, {}).pop(data["id"], None)
        elif "call" in data:  # already reported as not made
            decided.get(parent, {}).pop(data["call"]["id"], None)
        elif "calls" in data:
            origin = data["step"], parent
            decided[parent] = {call["id"]: (*origin, call) for call in data["calls"]}
    return [call for calls in decided.values() for call in calls.values()]


def _closing_events(
    emit: Callable[..., Event], run: Run, step: AgentStep, ending: Ending, why: str
) -> Iterator[Event]:
    """Yield the events that close a live step."""
    outcome = ending.outcome(step, why)
    parent_field = {} if step.parent is None else {"parent": step.parent}
    if outcome.finished_anyway and step.number in ending.outcomes:
        yield _late_result(emit, step, outcome, parent_field)
        yield emit(EventType.STATUS, kind=StatusKind.FINISHED_ANYWAY, step=step.number)
    yield emit(
        EventType.STEP,
        step=step.number,
        kind=step.kind,
        status=outcome.status,
        thought=step.thought or streamed_thought(run, step),
        **parent_field,
    )


def _late_result(
    emit: Callable[..., Event],
    step: AgentStep,
    outcome: CallOutcome,
    parent_field: dict[str, int],
) -> Event:
    return emit(
        EventType.TOOL_RESPONSE,
        tool_call_id=step.call_id,
        name=step.action,
        content_preview=outcome.result[:PREVIEW_CHARS],
        content=outcome.result,
        is_error=outcome.status == "failed",
        attempts=step.attempts,
        started=step.started_at.isoformat(),
        step=step.number,
        **parent_field,
    )
