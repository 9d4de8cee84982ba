"""Resumes an interrupted run: what was started is closed first."""

from agents.engine.events import Event, EventType
from agents.engine.tool import ToolRegistry
from agents.engine.turn.assembly import PlanResult, Turn

from .approval import fingerprint
from .handoff import Handoff
from .run_state import Data, RunState
from .tool_fallback import effect
from .tool_step import PREVIEW_CHARS


def close_interrupted_calls(trail: RunState) -> list[Event]:
    """Close interrupted steps; an interrupted turn is repeated."""
    cut = trail.cut
    told = [_end_event(trail, data) for data in cut.unended.values()]
    if cut.thinking is not None:
        told += [
            trail.emit(EventType.THOUGHT, step=cut.thinking, content=""),
            trail.emit(
                EventType.STEP,
                step=cut.thinking,
                kind="thought",
                status="cut",
                thought="".join(cut.words),
                ended=trail.past[-1].time.isoformat(),
            ),
        ]
        trail.turn -= not cut.is_shaping
    return told


def mark_uncertain_calls(trail: RunState, registry: ToolRegistry) -> None:
    """Drop decisions that are no longer valid.

    The outcome of running calls is unknown, and harmful ones aren't repeated. A tool that has
    changed isn't the one a person approved.
    """
    for call in trail.open:
        tool = registry.get(call.name) if registry.has(call.name) else None
        if tool is None or isinstance(tool, Handoff):
            continue
        is_begun = call.id in trail.begun and call.id not in trail.barred
        is_lost = is_begun and effect(tool) == "at_most_once"
        if is_lost:
            trail.unsure.add(call.id)
        if is_lost or trail.tools.get(call.id, fingerprint(tool)) != fingerprint(tool):
            trail.verdicts.pop(call.id, None)
            trail.pending.discard(call.id)
            trail.shared.discard(call.id)


def last_plan(trail: RunState) -> PlanResult:
    """Return the model's decision in its last turn."""
    if trail.open:
        return PlanResult(thought=trail.thought, calls=trail.open)
    facts = trail.cut.answer or {"answer": None}
    turn = Turn(content=facts["answer"] or "", finish_reason=facts.get("finish_reason"))
    return PlanResult(thought=trail.thought, final_answer=facts["answer"], turn=turn)


def _end_event(trail: RunState, data: Data) -> Event:
    return trail.emit(
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
