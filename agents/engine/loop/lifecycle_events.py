"""How a run says that it began, that it was held up, and that it is over."""

from collections.abc import Sequence
from typing import Any

from agents.engine.errors import AgentError
from agents.engine.events import Event, Type
from agents.engine.guardrails.checks import GuardrailResult
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.tool import Tool, specification

from .run_state import Trail
from .termination import StopReason, reason_of


def started(
    trail: Trail, planner: ReActPlanner, tools: Sequence[Tool], max_steps: int
) -> Event:
    nested = trail.emit.parent is not None
    return trail.emit(
        Type.HANDOFF if nested else Type.RUN_STARTED,
        query=trail.query,
        path=list(trail.path),
        model=planner.model,
        dialect=planner.dialect,
        road=getattr(planner.llm, "road", ""),
        instructions=planner.instructions,
        tools=[specification(tool) for tool in tools],
        max_steps=max_steps,
        **planner.provided,
    )


def resumed(trail: Trail) -> Event:
    """It goes on: after it was left behind, or after what was told once more."""
    if trail.past[-1].is_replayed:
        return trail.emit(Type.STATUS, kind="replayed", step=trail.emit.count.steps)
    return trail.emit(Type.STATUS, kind="resumed", step=trail.step)


def guarded(trail: Trail, finding: GuardrailResult, **more: Any) -> Event:
    """What a rule found; `more` is what it was about, for whoever reads it."""
    return trail.emit(
        Type.GUARDRAIL,
        step=trail.next_step(),
        turn=trail.turn,
        action=finding.action.value,
        reason=finding.reason,
        details={**finding.details, **more},
    )


def failed(trail: Trail, error: AgentError) -> Event:
    return trail.emit(
        Type.ERROR,
        message=str(error),
        type=type(error).__name__,
        advice=error.advice,
        stopped_reason=reason_of(error).value,
        step=trail.step,
    )


def paused(trail: Trail) -> Event:
    """A person has to be asked: nothing comes after it until they have said something."""
    trail.is_over = True
    return trail.emit(Type.RUN_PAUSED, reason="approval", turn=trail.turn)


def finished(
    trail: Trail,
    reason: StopReason,
    *,
    answer: str = "",
    detail: str = "",
    advice: str = "",
    output: Any = None,
) -> Event:
    """The last event of a trail: nothing comes after it."""
    trail.is_over = True
    nested = trail.emit.parent is not None
    return trail.emit(
        Type.HANDOFF_RETURN if nested else Type.RUN_FINISHED,
        answer=answer,
        stopped_reason=reason.value,
        detail=detail,
        advice=advice,
        turns=trail.turn,
        tool_calls=trail.progress.total(),
        usage=trail.progress.used.to_dict(),
        output=output,
    )
