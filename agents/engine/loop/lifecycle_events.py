"""Events that start, resume, pause and finish a run, and those of guardrails and errors."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from agents.engine.errors import AgentError
from agents.engine.events import Event, EventType, StatusKind
from agents.engine.guardrails.checks import GuardrailResult
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.tool import Tool, specification

from .run_state import RunState
from .termination import StopReason, stop_reason


def start_event(
    run_state: RunState,
    planner: ReActPlanner,
    tools: Sequence[Tool],
    max_steps: int,
    unsent: Sequence[str] = (),
) -> Event:
    """Return the first event; `unsent` are tools that the model can only find."""
    nested = run_state.emit.parent is not None
    return run_state.emit(
        EventType.HANDOFF if nested else EventType.RUN_STARTED,
        query=run_state.query,
        path=list(run_state.path),
        model=planner.model,
        dialect=planner.dialect,
        route=getattr(planner.llm, "route", ""),
        instructions=planner.instructions,
        tools=[specification(tool) for tool in tools],
        max_steps=max_steps,
        **({"unsent_tools": list(unsent)} if unsent else {}),
        **planner.provider_info,
    )


def resume_event(run_state: RunState) -> Event:
    """Return the event that resumes a run after an interruption or a replay."""
    if run_state.recorded_events[-1].is_replayed:
        return run_state.emit(
            EventType.STATUS, kind=StatusKind.REPLAYED, step=run_state.emit.counters.steps
        )
    return run_state.emit(EventType.STATUS, kind=StatusKind.RESUMED, step=run_state.step)


def finding_events(
    run_state: RunState, finding: GuardrailResult, **details: Any
) -> list[Event]:
    """Return the event for a finding, and what a model check has used."""
    event = guardrail_event(run_state, finding, **details)
    if not finding.usage:
        return [event]
    run_state.progress.used.add(finding.usage)
    return [event, run_state.emit(EventType.USAGE, step=event.data["step"], **finding.usage)]


def guardrail_event(run_state: RunState, finding: GuardrailResult, **details: Any) -> Event:
    """Return the event for a finding; `details` say what it was about."""
    emit = run_state.emit
    fields = {}
    if judge := finding.details.get("judge"):
        started = emit.clock.now() - timedelta(seconds=judge["seconds"])
        fields["started"] = started.isoformat()
    return emit(
        EventType.GUARDRAIL,
        **fields,
        step=run_state.next_step(),
        turn=run_state.turn,
        action=finding.action.value,
        reason=finding.reason,
        details={**finding.details, **details},
    )


def error_event(run_state: RunState, error: AgentError) -> Event:
    return run_state.emit(
        EventType.ERROR,
        message=str(error),
        type=type(error).__name__,
        advice=error.advice,
        stopped_reason=stop_reason(error).value,
        step=run_state.step,
    )


def pause_event(run_state: RunState) -> Event:
    """Return the event that pauses a run until a person decides."""
    run_state.is_over = True
    return run_state.emit(EventType.RUN_PAUSED, reason="approval", turn=run_state.turn)


def finish_event(
    run_state: RunState,
    reason: StopReason,
    *,
    answer: str = "",
    detail: str = "",
    advice: str = "",
    output: Any = None,
) -> Event:
    """Return the last event of a run."""
    run_state.is_over = True
    nested = run_state.emit.parent is not None
    return run_state.emit(
        EventType.HANDOFF_RETURN if nested else EventType.RUN_FINISHED,
        answer=answer,
        stopped_reason=reason.value,
        detail=detail,
        advice=advice,
        turns=run_state.turn,
        tool_calls=run_state.progress.total(),
        usage=run_state.progress.used.to_dict(),
        output=output,
    )
