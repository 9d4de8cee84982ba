"""Events that start, resume, pause and finish a run."""

from collections.abc import Sequence
from typing import Any

from agents.engine.errors import AgentError
from agents.engine.events import Event, EventType, StatusKind
from agents.engine.guardrails.checks import GuardrailResult
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.tool import Tool, specification

from .run_state import RunState
from .termination import StopReason, stop_reason


def start_event(
    trail: RunState, planner: ReActPlanner, tools: Sequence[Tool], max_steps: int
) -> Event:
    nested = trail.emit.parent is not None
    return trail.emit(
        EventType.HANDOFF if nested else EventType.RUN_STARTED,
        query=trail.query,
        path=list(trail.path),
        model=planner.model,
        dialect=planner.dialect,
        road=getattr(planner.llm, "road", ""),
        instructions=planner.instructions,
        tools=[specification(tool) for tool in tools],
        max_steps=max_steps,
        **planner.provider_info,
    )


def resume_event(trail: RunState) -> Event:
    """Return the event that resumes a run after an interruption or a replay."""
    if trail.past[-1].is_replayed:
        return trail.emit(
            EventType.STATUS, kind=StatusKind.REPLAYED, step=trail.emit.count.steps
        )
    return trail.emit(EventType.STATUS, kind=StatusKind.RESUMED, step=trail.step)


def guardrail_event(trail: RunState, finding: GuardrailResult, **more: Any) -> Event:
    """Return the event for a finding; `more` says what it was about."""
    return trail.emit(
        EventType.GUARDRAIL,
        step=trail.next_step(),
        turn=trail.turn,
        action=finding.action.value,
        reason=finding.reason,
        details={**finding.details, **more},
    )


def error_event(trail: RunState, error: AgentError) -> Event:
    return trail.emit(
        EventType.ERROR,
        message=str(error),
        type=type(error).__name__,
        advice=error.advice,
        stopped_reason=stop_reason(error).value,
        step=trail.step,
    )


def pause_event(trail: RunState) -> Event:
    """Return the event that pauses a run until a person decides."""
    trail.is_over = True
    return trail.emit(EventType.RUN_PAUSED, reason="approval", turn=trail.turn)


def finish_event(
    trail: RunState,
    reason: StopReason,
    *,
    answer: str = "",
    detail: str = "",
    advice: str = "",
    output: Any = None,
) -> Event:
    """Return the last event of a run."""
    trail.is_over = True
    nested = trail.emit.parent is not None
    return trail.emit(
        EventType.HANDOFF_RETURN if nested else EventType.RUN_FINISHED,
        answer=answer,
        stopped_reason=reason.value,
        detail=detail,
        advice=advice,
        turns=trail.turn,
        tool_calls=trail.progress.total(),
        usage=trail.progress.used.to_dict(),
        output=output,
    )
