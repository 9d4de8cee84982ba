"""Saves events as rows, and reads rows back as text for users and models.

It also ends runs that can't end themselves, and decides what became of their calls.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from itertools import count, groupby
from operator import attrgetter
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.models import Min, QuerySet
from django.db.models.functions import Length

from agents.db.compiled_queries import compiled_query
from agents.db.fast_writes import concrete_field
from agents.db.raw_cursor import adapt_datetime, adapt_json, execute_many
from agents.db.sanitize import sanitize_event
from agents.engine import attachments
from agents.engine.events import DELTA_TYPES, Event, EventFactory, EventType, StatusKind
from agents.engine.loop import AskPersonTool, CallOutcome, StopReason
from agents.engine.privacy import Redactor
from agents.engine.sentences import Sentence as _
from agents.engine.state import INTERRUPTED, NOT_STARTED, Message, repair_history
from agents.models import Agent, AgentStep, Approval, Run, RunEvent
from agents.models.sentence_fields import first_chars

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
USER_DEACTIVATED = _("The account of the user who started the run was disabled.")
CANCELLED = CallOutcome(status="cancelled")
UNKNOWN = CallOutcome(status="unknown")
UNSTARTED = CallOutcome(status="unstarted")
FAILED = CallOutcome(status="failed")


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run is ended from outside, as a code and a sentence.

    `outcomes` are those of running calls, by step. Those of other calls are known only if
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
        is_asking = why in {Approval.Why.ELICITATION, Approval.Why.CLIENT}  # so it runs
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
    rows = [
        (
            run,
            event.seq,
            event.type.value,
            event.agent,
            adapt_datetime(wrapper, event.time),
            adapt_json(wrapper, event.data),
        )
        for run, event in entries
    ]
    execute_many(wrapper, _insert_sql(), rows)
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


@transaction.atomic
def close(run_pk: int, ending: Ending, epoch: int | None = None) -> list[Event]:
    """End a run that can't end itself, and return the events.

    With an epoch, only if the run still has it: another process may own the run now.
    """
    run = Run.objects.live().select_for_update().filter(pk=run_pk).first()
    if run is None or epoch not in (None, run.epoch):
        return []
    emit: Callable[..., Event] = event_factory(run, run.agent_name)
    last = run.events.order_by("-seq").first()
    if ending.reason is StopReason.INTERRUPTED and last is not None:
        # The server died, so the run ended with its last event.
        emit = partial(emit, ended=last.time.isoformat())
    if run.is_waiting:
        ending = replace(ending, is_sure=True)  # nothing runs while an approval is pending
    reasons = dict(
        run.approvals.filter(verdict=Approval.Verdict.WAITING).values_list("step", "why")
    )
    events: list[Event] = []
    for step in run.steps.filter(ended_at=None):
        events += _closing_events(emit, run, step, ending, reasons.get(step.number, ""))
    events += _unstarted_events(emit, run)
    detail = ending.detail
    if not detail and ending.reason is StopReason.CANCELLED:
        is_deactivated = run.user is not None and not run.user.is_active
        detail = USER_DEACTIVATED if is_deactivated else ""
    events.append(
        emit(
            EventType.RUN_FINISHED,
            answer=streamed_answer(run),
            stopped_reason=ending.reason.value,
            detail=detail,
            advice=ending.advice,
            turns=run.turns,
            tool_calls=run.steps.filter(kind=AgentStep.Kind.TOOL).count(),
        )
    )
    if run.agent is not None and run.agent.personal_data == Agent.PersonalData.UNKEPT:
        events = list(map(Redactor().event, events))  # late tool results have personal data too
    events = [sanitize_event(event) for event in events]
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
    run: Run, max_chars: int = MAX_OBSERVATION_CHARS, without: Sequence[str] = ("request",)
) -> list[AgentStep]:
    """Return all steps without their requests and with shortened observations.

    A run can have 20 MB of results; opening a step loads the rest.
    """
    annotated = run.steps.defer("observation", *without).annotate(
        beginning=first_chars("observation", max_chars), found_size=Length("observation")
    )
    steps: list[AgentStep] = []
    for step in annotated:
        step.observation = step.beginning
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
    types = [EventType.THOUGHT_DELTA]
    if step.parent is not None:
        types.append(EventType.DELTA)
    events = run.events.filter(type__in=types, seq__gte=step.first_seq)
    if until is not None:
        events = events.filter(seq__lte=until)
    deltas = events.order_by("seq").values_list("data", flat=True)
    return "".join(data["content"] for data in deltas if data["step"] == step.number)


def transcript(run: Run) -> list[Message]:
    """Return the run as history messages: a whole exchange, or nothing."""
    if run.status == Run.Status.BLOCKED:
        return []
    question: Message = {"role": "user", "content": run.query}
    if search_tag(AgentStep.Kind.GUARDRAIL, "mask") in run.step_types:
        # The question as the model got it, with its masks.
        masks = run.steps.filter(kind=AgentStep.Kind.GUARDRAIL, action="mask", parent=None)
        texts = (step.action_input.get("text") for step in masks if step.action_input)
        question["content"] = next((text for text in texts if text is not None), run.query)
    if run.files:
        question["files"] = run.files
    messages = [question]
    if run.tool_calls:
        calls = run.steps.filter(kind=AgentStep.Kind.TOOL, parent=None)
        for _turn, calls_of_turn in groupby(calls, key=attrgetter("turn")):
            messages += _tool_messages(calls_of_turn)
    answer = run.answer or f"(No answer: {run.detail or run.stopped_reason})"
    review = getattr(run, "review", None)
    if review is not None and review.correction:
        answer = f"{answer}\n\n{CORRECTION_NOTE}\n\n{review.correction}"
    messages.append({"role": "assistant", "content": answer})
    return repair_history(messages)


def _tool_messages(steps: Iterable[AgentStep]) -> list[Message]:
    """Return the message with the calls of one turn, and those with their results."""
    tool_calls = []
    results: list[Message] = []
    for step in steps:
        arguments = step.action_input if isinstance(step.action_input, dict) else {}
        function = {"name": step.action, "arguments": json.dumps(arguments)}
        tool_calls.append({"id": step.call_id, "type": "function", "function": function})
        text = step.observation
        if not text and step.status != AgentStep.Status.DONE:
            is_unstarted = step.status == AgentStep.Status.UNSTARTED
            text = NOT_STARTED if is_unstarted else INTERRUPTED
        for ref in step.attachments:
            if not ref.get("problem"):
                text = attachments.explain(text, attachments.placeholder(ref), NOT_RESENT)
        result: Message = {"role": "tool", "tool_call_id": step.call_id, "content": text}
        if step.is_untrusted:  # later runs cite its passages, and know how far to trust it
            result["untrusted"] = step.action
            if step.sources:
                result["sources"] = step.sources
            if any(note.get("kind") == StatusKind.EMBEDDED_INSTRUCTIONS for note in step.notes):
                result["is_suspect"] = True
        results.append(result)
    return [{"role": "assistant", "content": None, "tool_calls": tool_calls}, *results]


def _unstarted_events(emit: Callable[..., Event], run: Run) -> Iterator[Event]:
    """Yield events for calls that were decided on but never started."""
    # Pending calls by the parent of their agent and by id, with the step that decided on them.
    pending: dict[int | None, dict[str, tuple[int, dict[str, Any]]]] = {}
    events = run.events.filter(type__in=DECISION_TYPES).order_by("seq")
    for type, data in events.values_list("type", "data"):
        parent = data.get("parent")
        if type == EventType.HANDOFF_RETURN:
            pending.pop(parent, None)
        elif type != EventType.STEP:
            pending.get(parent, {}).pop(data["id"], None)
        elif "call" in data:  # already reported as not made
            pending.get(parent, {}).pop(data["call"]["id"], None)
        elif "calls" in data:
            pending[parent] = {call["id"]: (data["step"], call) for call in data["calls"]}
    if not any(pending.values()):
        return
    turns = dict(run.steps.values_list("number", "turn"))
    numbers = count(max(turns) + 1)
    for parent, calls in pending.items():
        parent_field = {} if parent is None else {"parent": parent}
        for step, call in calls.values():
            fields = {"kind": "tool", "status": "unstarted", "turn": turns[step], "call": call}
            yield emit(EventType.STEP, step=next(numbers), **fields, **parent_field)


def _closing_events(
    emit: Callable[..., Event], run: Run, step: AgentStep, ending: Ending, why: str
) -> Iterator[Event]:
    """Yield the events that close a live step."""
    outcome = ending.outcome(step, why)
    parent_field = {} if step.parent is None else {"parent": step.parent}
    if outcome.finished_anyway and step.number in ending.outcomes:
        yield emit(
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
        yield emit(EventType.STATUS, kind=StatusKind.FINISHED_ANYWAY, step=step.number)
    yield emit(
        EventType.STEP,
        step=step.number,
        kind=step.kind,
        status=outcome.status,
        thought=step.thought or streamed_thought(run, step),
        **parent_field,
    )
