"""Which event changes what."""

from agents.engine.events import Event, EventType

from .approval_events import on_approval_requested, on_approval_resolved
from .plan_events import on_evaluation, on_plan, on_task
from .rows import ProjectedRows
from .run_events import on_error, on_run_finished, on_run_paused, on_run_started
from .step_events import (
    on_guardrail,
    on_status,
    on_step,
    on_step_started,
    on_tool_call,
    on_tool_response,
    on_usage,
)

HANDLERS = {
    EventType.RUN_STARTED: on_run_started,
    EventType.STEP_STARTED: on_step_started,
    EventType.TASK: on_task,
    EventType.PLAN: on_plan,
    EventType.EVALUATION: on_evaluation,
    EventType.TOOL_CALL: on_tool_call,
    EventType.TOOL_RESPONSE: on_tool_response,
    EventType.STATUS: on_status,
    EventType.USAGE: on_usage,
    EventType.STEP: on_step,
    EventType.GUARDRAIL: on_guardrail,
    EventType.ERROR: on_error,
    EventType.APPROVAL_REQUESTED: on_approval_requested,
    EventType.APPROVAL_RESOLVED: on_approval_resolved,
    EventType.RUN_PAUSED: on_run_paused,
    EventType.RUN_FINISHED: on_run_finished,
}


class Projection(ProjectedRows):
    """Applies events to rows, one function per event type."""

    def take(self, run: int, event: Event) -> None:
        if (handler := HANDLERS.get(event.type)) is not None:
            handler(self, run, event)
