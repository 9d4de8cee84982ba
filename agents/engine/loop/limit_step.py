"""What a run does at one of its limits: it asks a person, finishes or stops."""

import json
from collections.abc import AsyncGenerator

from agents.engine.events import Event, EventFactory, EventType
from agents.engine.turn.assembly import ToolCall

from ..sentences import Sentence as _
from ..sentences import as_error
from .lifecycle_events import finish_event, pause_event
from .run_limits import APPROVERS, BUDGET, RAISE_TOOL, RunLimit
from .run_state import RunState
from .termination import StopReason
from .tool_calls.approval import digest

Events = AsyncGenerator[Event, None]

FINISH_PROMPT = """\
The budget of this run is used up. Answer the question now with what you have found so far, in \
its language. Say what is missing. No tools can be used any more."""
NOT_CALLED = as_error(
    _(
        "the tool wasn't called, because the run reached one of its limits. Answer with what "
        "you have."
    )
)


class LimitRequest:
    """A step that asks whether a limit is raised; the run waits for the decision."""

    def __init__(self, run_state: RunState, limit: RunLimit) -> None:
        self.run_state = run_state
        self.limit = limit

    async def events(self) -> Events:
        for event in request_events(self.run_state, self.limit, self.run_state.emit):
            yield event
        yield pause_event(self.run_state)


class WrapUp:
    """A step that closes the open calls, so that the model answers with what there is."""

    def __init__(self, run_state: RunState) -> None:
        self.run_state = run_state

    async def events(self) -> Events:
        run_state = self.run_state
        reported_ids = {
            event.data.get("call", {}).get("id")
            for event in run_state.recorded_events
            if event.type is EventType.STEP
        }
        for call in run_state.open:
            run_state.close(call, NOT_CALLED)
            if call.id in reported_ids:  # before an interruption
                continue
            yield run_state.emit(
                EventType.STEP,
                status="unstarted",
                call={
                    "id": call.id,
                    "function": {"name": call.name, "arguments": call.arguments},
                    "effect": "",
                },
                step=run_state.next_step(),
                turn=run_state.turn,
                kind="tool",
            )
        run_state.say({"role": "user", "content": FINISH_PROMPT})


class LimitStop:
    """A step that ends the run at a limit, because a person stopped it there."""

    def __init__(self, run_state: RunState, limit: RunLimit) -> None:
        self.run_state = run_state
        self.limit = limit

    async def events(self) -> Events:
        yield stop_event(self.run_state, self.limit)


def stop_event(run_state: RunState, limit: RunLimit, answer: str = "") -> Event:
    """Return the last event of a run that a person stopped at a limit."""
    return finish_event(run_state, StopReason.CANCELLED, answer=answer, detail=limit.message)


def request_events(run_state: RunState, limit: RunLimit, emit: EventFactory) -> list[Event]:
    """Return the request, unless there is one already: parallel steps share their limits."""
    decisions = run_state.progress.limit_decisions
    if decisions.is_pending(limit.key):
        return []
    step = emit.next_step()
    limit_fields = limit.to_dict()
    call = ToolCall(id=f"limit_{step}", name=RAISE_TOOL, arguments=json.dumps(limit_fields))
    event = emit(
        EventType.APPROVAL_REQUESTED,
        id=call.id,
        function={"name": call.name, "arguments": call.arguments},
        digest=digest(call, BUDGET, emit.seq + 1),
        tool="",
        why=BUDGET,
        kind=BUDGET,
        role=APPROVERS if limit.needs_approver else "",
        thought="",
        step=step,
        turn=run_state.turn,
        **limit_fields,
    )
    decisions.record(event)
    return [event]


def row_end_events(run_state: RunState) -> list[Event]:
    """Return the events that end the rows of decided requests, of all agents of the run."""
    decisions = run_state.progress.limit_decisions
    events = list[Event]()
    for request, action in list(decisions.unended.values()):
        if action is None:
            continue
        parent = request.data.get("parent")
        emit = run_state.emit
        factory = emit if parent is None else emit.child(request.agent, parent)
        status = "done" if action == "raise" else "rejected"
        event = factory(
            EventType.STEP,
            kind=BUDGET,
            status=status,
            action=action,
            step=request.data["step"],
            turn=request.data["turn"],
        )
        decisions.record(event)
        events.append(event)
    return events
