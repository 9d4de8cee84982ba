"""The side effects of a run, listed next to its answer regardless of what is visible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.models import AgentStep, Run

from .step_view import StepView

if TYPE_CHECKING:
    from ..plans.plan_view import PlanView

Status = AgentStep.Status
MAX_CALLS = 100
MAX_TASKS = 10
ENDED_EARLY = {Run.Status.STOPPED, Run.Status.FAILED, Run.Status.INTERRUPTED}
NOT_EXECUTED = {Status.REJECTED, Status.BLOCKED, Status.UNSTARTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsView:
    """Side effects for display; `is_in_steps` if the visible steps already show them."""

    calls: Sequence[StepView]
    more: int = 0
    tasks: Sequence[str] = ()
    is_in_steps: bool = False

    @property
    def task_names(self) -> str:
        omission = ["…"] if len(self.tasks) > MAX_TASKS else []
        return ", ".join([*self.tasks[:MAX_TASKS], *omission])


def effects_view(
    run: Run, steps: Sequence[StepView], folded: int, plan: "PlanView | None"
) -> EffectsView | None:
    """Return every call of a run that ended early, or only irreversible ones."""
    calls = [step for step in steps if step.step.has_effects and not step.is_replayed]
    has_ended_early = run.status in ENDED_EARLY
    if not has_ended_early:
        final = [c for c in calls if c.step.effect == AgentStep.Effect.IRREVERSIBLE]
        calls = [call for call in final if call.step.status not in NOT_EXECUTED]
    tasks = plan.not_started if plan and has_ended_early else []
    if not calls and not tasks:
        return None
    hidden_count = max(0, len(calls) - MAX_CALLS)
    if hidden_count:
        # Irreversible and uncertain calls first.
        chosen = {call.step.number for call in sorted(calls, key=_importance)[:MAX_CALLS]}
        calls = [call for call in calls if call.step.number in chosen]
    return EffectsView(
        calls=calls,
        more=hidden_count,
        tasks=tasks,
        is_in_steps=not has_ended_early and not folded,
    )


def _importance(call: StepView) -> tuple[bool, bool]:
    is_final = call.step.effect == AgentStep.Effect.IRREVERSIBLE
    is_executed = call.step.status not in NOT_EXECUTED
    return not (is_final and is_executed), call.step.status != Status.UNKNOWN
