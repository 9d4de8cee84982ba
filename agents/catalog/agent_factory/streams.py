"""The events of a run: new, resumed, replayed or with other tools."""

from dataclasses import replace

from agents.db import database
from agents.db.installation import configured
from agents.engine.events import Event, EventType
from agents.engine.loop import AgentRuntime, Events
from agents.engine.state import AgentState, Message
from agents.models import AgentStep, Run, RunEvent

from ..attachments import attachment_store, file_context
from ..attachments.reading_costs import ReadingCosts
from .personal_data import apply_redaction
from .plain_replies import keep_model
from .runtime import Change, RegistryLoader, build

STOPPED_STATUSES = {"cancelled", "unknown", "unstarted"}


async def start(run: Run) -> Events:
    """Return the events of a new run."""
    return await _stream(run, [], [])


async def resume(run: Run) -> Events:
    """Return the events of a queued, paused or abandoned run, from there on."""
    past_events, recorded = await database.run(_recorded_events, run)
    return await _stream(run, past_events, recorded)


async def stream_with(run: Run, registry: RegistryLoader, change: Change = list) -> Events:
    """Return the events of a new or interrupted run with other tools than the agent's.

    Files aren't read.
    """
    original = run.original
    runtime = await build(original, registry, change)
    past_events = await database.run(own_events, run)
    state = _build_state(original.history)
    events = (
        runtime.resume(past_events, state)
        if past_events
        else runtime.stream(original.query, state)
    )
    return apply_redaction(run, events)


async def _stream(run: Run, past_events: list[Event], recorded: list[Event]) -> Events:
    """Return the events after `past_events`; with `recorded`, those are replayed first."""
    original = run.original
    costs = [ReadingCosts(run)] if file_context.has_files(run) else []
    runtime = await build(original, change=lambda capabilities: [*capabilities, *costs])
    keep_model(run, runtime)
    if recorded and run.origin_id is not None:
        copy = attachment_store.copy_attachments
        await database.run(copy, run.origin_id, run.pk, recorded)
    state = await _load_state(original, runtime)
    if len(past_events) < len(recorded):
        events = runtime.rerun(recorded, past_events, state)
    elif past_events:
        events = runtime.resume(past_events, state)
    else:
        events = runtime.stream(original.query, state)
    return apply_redaction(run, events)


def own_events(run: Run) -> list[Event]:
    return [row.value for row in run.events.order_by("seq")]


def _recorded_events(run: Run) -> tuple[list[Event], list[Event]]:
    """Return the run's own events and those to replay first."""
    past_events = own_events(run)
    if run.is_continuation:
        origin_events = RunEvent.objects.filter(run=run.origin_id).order_by("seq")
        before_stop = [event for row in origin_events if not _is_stop_event(event := row.value)]
        return past_events, [
            replace(event, seq=number) for number, event in enumerate(before_stop, 1)
        ]
    if run.origin_step is None:
        return past_events, []
    rerun_step = AgentStep.objects.filter(run=run.origin_id, number=run.origin_step).first()
    if rerun_step is None or rerun_step.first_seq <= 2:  # only the question comes before it
        return past_events, []
    recorded = RunEvent.objects.filter(run=run.origin_id, seq__lt=rerun_step.first_seq)
    return past_events, [row.value for row in recorded.order_by("seq")]


def _is_stop_event(event: Event) -> bool:
    is_cut = event.type is EventType.STEP and event.data["status"] in STOPPED_STATUSES
    return is_cut or event.type is EventType.RUN_FINISHED


async def _load_state(run: Run, runtime: AgentRuntime) -> AgentState:
    """Return the state before the question, with the content of the chat's files."""
    history, question = await file_context.resolve(run, runtime.planner)
    state = _build_state(history)
    state.question = question
    return state


def _build_state(history: list[Message]) -> AgentState:
    state = AgentState(max(configured.HISTORY_MESSAGES.value, 2 * len(history)))
    for message in history:
        extra_fields = {k: v for k, v in message.items() if k not in {"role", "content"}}
        state.add_message(message["role"], message["content"], **extra_fields)
    return state
