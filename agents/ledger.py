"""What a run did to the world outside: what it read, what it wrote, what cannot be undone."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents.models import AgentStep

Effect, Status = AgentStep.Effect, AgentStep.Status

CHANGES = {Effect.WRITE, Effect.IRREVERSIBLE}
# What was not done cannot have changed anything.
NOT_MADE = {Status.REJECTED, Status.BLOCKED, Status.WAITING}


@dataclass(frozen=True, slots=True)
class Ledger:
    changes: list[AgentStep]
    reads: int
    unclear: int  # calls of which nobody kept what they could do

    @classmethod
    def of(cls, steps: Iterable[AgentStep]) -> "Ledger":
        """Tasks for other agents have no effect of their own, and what was declined none."""
        steps = list(steps)
        parents = {step.parent for step in steps}
        calls = [step for step in steps if step.kind == AgentStep.Kind.TOOL]
        made = [c for c in calls if c.status not in NOT_MADE and c.number not in parents]
        return cls(
            changes=[call for call in made if call.effect in CHANGES],
            reads=sum(call.effect == Effect.READ for call in made),
            unclear=sum(not call.effect for call in made),
        )

    @property
    def writes(self) -> int:
        return sum(call.effect == Effect.WRITE for call in self.changes)

    @property
    def irreversible(self) -> int:
        return len(self.changes) - self.writes

    @property
    def is_empty(self) -> bool:
        return not (self.changes or self.reads or self.unclear)
