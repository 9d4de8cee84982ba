"""What plans, their tasks and evaluations change."""

from agents.engine.events import Event
from agents.models import AgentStep

from .rows import ProjectedRows, step_columns

TASK_FIELDS = ("plan", "work", "what", "expected", "is_each")
PLAN_FIELDS = ("plan", "description", "steps", "parameters", "by", "changes", "feedback")
EVALUATION_FIELDS = ("plan", "expected", "is_met", "reason", "feedback")
PANEL_FIELDS = ("merge", "heads", "groups", "chosen", "differences", "arithmetic")


def on_task(rows: ProjectedRows, run: int, event: Event) -> None:
    """Add a row for a plan step, a plan or an evaluation, with its work below it."""
    facts = {name: event.data[name] for name in TASK_FIELDS if event.data.get(name)}
    step = AgentStep(
        **step_columns(rows, run, event),
        kind=event.data["kind"],
        action=event.data["name"],
        action_input=facts,
        started_at=event.time,
    )
    rows.add_step(step)
    if event.data["kind"] == AgentStep.Kind.TASK and "parent" not in event.data:
        rows.count(run, tasks=1)


def on_plan(rows: ProjectedRows, run: int, event: Event) -> None:
    facts = {name: event.data[name] for name in PLAN_FIELDS}
    rows.update_step(run, event, action_input=facts, observation=event.data["description"])


def on_evaluation(rows: ProjectedRows, run: int, event: Event) -> None:
    facts = {name: event.data[name] for name in EVALUATION_FIELDS}
    facts |= {name: event.data[name] for name in PANEL_FIELDS if name in event.data}
    rows.update_step(run, event, action_input=facts, observation=event.data["reason"])
