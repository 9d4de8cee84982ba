"""Resumes an interrupted run: what was started is closed first."""

from agents.engine.call_context import SavedAnswer
from agents.engine.events import Event, EventType
from agents.engine.tool import ToolRegistry
from agents.engine.turn.assembly import PlanResult, Turn

from .handoff import Handoff
from .lifecycle_events import resume_event
from .limit_step import row_end_events
from .run_state import RunState
from .tool_calls.approval import ELICITATION, fingerprint
from .tool_calls.call_events import PREVIEW_CHARS
from .tool_calls.live_call import QUESTION_INTERRUPTED, answer_event
from .tool_calls.tool_fallback import effect


def resume_events(run_state: RunState, registry: ToolRegistry) -> list[Event]:
    """Close what was started before an interruption; nothing for a new run."""
    events = list[Event]()
    if not run_state.recorded_events:
        return events
    last = run_state.recorded_events[-1]
    is_decided = last.type is EventType.APPROVAL_RESOLVED
    if run_state.emit.parent is None:
        if not is_decided or last.data.get("why") == ELICITATION:
            events.append(resume_event(run_state))
        events += row_end_events(run_state)
    events += close_interrupted_calls(run_state)
    mark_uncertain_calls(run_state, registry)
    return events


def close_interrupted_calls(run_state: RunState) -> list[Event]:
    """Close interrupted steps; an interrupted turn is repeated."""
    interruption = run_state.interruption
    events = list[Event]()
    for data in interruption.unended.values():
        ended = run_state.emit(
            EventType.STEP,
            step=data["step"],
            turn=data["turn"],
            kind="tool",
            status="failed" if data["is_error"] else "done",
            action=data.get("stand_in") or data["name"],
            **({"called": data["name"]} if data.get("stand_in") else {}),
            observation=data["content"][:PREVIEW_CHARS],
            started=data["started"],
        )
        events.append(ended)
    # Nobody waits for the answers to an interrupted call's questions any more.
    answer = SavedAnswer(action="cancel")
    events += [
        answer_event(run_state.emit, data["id"], data["step"], answer, QUESTION_INTERRUPTED)
        for data in run_state.questions.values()
    ]
    run_state.questions.clear()
    if interruption.model_step is not None:
        events += [
            run_state.emit(EventType.THOUGHT, step=interruption.model_step, content=""),
            run_state.emit(
                EventType.STEP,
                step=interruption.model_step,
                kind="thought",
                status="cut",
                thought="".join(interruption.texts),
                ended=run_state.recorded_events[-1].time.isoformat(),
            ),
        ]
        run_state.turn -= not interruption.is_shaping
    return events


def mark_uncertain_calls(run_state: RunState, registry: ToolRegistry) -> None:
    """Drop decisions that are no longer valid.

    The outcome of running calls is unknown, and harmful ones aren't repeated. A tool that has
    changed isn't the one a person approved.
    """
    for call in run_state.open:
        tool = registry.get(call.name) if registry.has(call.name) else None
        if tool is None or isinstance(tool, Handoff):
            continue
        is_begun = call.id in run_state.started_calls and call.id not in run_state.barred
        is_lost = is_begun and effect(tool) == "at_most_once"
        if is_lost:
            run_state.unsure.add(call.id)
        approved = run_state.tool_fingerprints.get(call.id)
        if is_lost or (approved is not None and approved != fingerprint(tool)):
            run_state.decisions.pop(call.id, None)
            run_state.pending.discard(call.id)
            run_state.shared.discard(call.id)


def last_plan(run_state: RunState) -> PlanResult:
    """Return the model's decision in its last turn."""
    if run_state.open:
        return PlanResult(thought=run_state.thought, calls=run_state.open)
    facts = run_state.interruption.answer or {"answer": None}
    turn = Turn(content=facts["answer"] or "", finish_reason=facts.get("finish_reason"))
    return PlanResult(thought=run_state.thought, final_answer=facts["answer"], turn=turn)
