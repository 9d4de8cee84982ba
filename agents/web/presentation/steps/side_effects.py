"""Side effects of a run: reads, writes, irreversible calls, and calls never started."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from agents.models import AgentStep

from .step_view import StepView

Row: TypeAlias = AgentStep | StepView
Effect = AgentStep.Effect
Status = AgentStep.Status

# A call that wasn't made can't have changed anything.
NOT_EXECUTED = {Status.REJECTED, Status.BLOCKED, Status.WAITING, Status.UNSTARTED}


@dataclass(frozen=True, slots=True)
class SideEffects:
    changes: list[Row]
    reads: int
    unclear: int  # calls with an unknown effect
    not_started: list[Row]

    @classmethod
    def of(cls, steps: Iterable[Row]) -> "SideEffects":
        """Collect side effects; handoffs and rejected calls have none."""
        steps = list(steps)
        parents = {step.parent for step in steps}
        calls = [step for step in steps if step.kind == AgentStep.Kind.TOOL]
        executed = [
            c for c in calls if c.status not in NOT_EXECUTED and c.number not in parents
        ]
        return cls(
            changes=[call for call in executed if call.has_effects],
            reads=sum(call.effect == Effect.READ for call in executed),
            unclear=sum(not call.effect for call in executed),
            not_started=[c for c in calls if c.status == Status.UNSTARTED and c.has_effects],
        )

    @property
    def rows(self) -> list[Row]:
        """Calls with effects: made, possibly made, or never started."""
        return sorted(self.changes + self.not_started, key=lambda call: call.number)

    @property
    def writes(self) -> int:
        return sum(call.effect == Effect.WRITE for call in self.changes)

    @property
    def irreversible(self) -> int:
        return len(self.changes) - self.writes

    @property
    def is_empty(self) -> bool:
        return not (self.changes or self.reads or self.unclear or self.not_started)
