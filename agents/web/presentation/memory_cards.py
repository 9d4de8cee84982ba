"""What a run saved to memory or suggests to save, with the buttons to decide."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine.events import StatusKind
from agents.memory import RememberTool
from agents.models import AgentStep, Memory, Run

from .steps.step_view import StepView


@dataclass(frozen=True, slots=True)
class MemoryCard:
    """A memory and what can be done with it."""

    memory: Memory

    @property
    def state(self) -> str:
        memory = self.memory
        if memory.deleted_at is not None:
            return "dismissed" if memory.status == Memory.Status.PROPOSED else "removed"
        if memory.status == Memory.Status.PROPOSED:
            return "proposed"
        return "saved" if memory.valid_to is None else "replaced"


def memory_cards(run: Run, steps: Sequence[StepView]) -> list[MemoryCard]:
    """Return the memories of a run; most runs have none, which costs no query."""
    if not any(_is_about_memory(step.step) for step in steps):
        return []
    rows = Memory.objects.filter(run=run.pk).order_by("pk")
    return [MemoryCard(row) for row in rows.select_related("project")]


def _is_about_memory(step: AgentStep) -> bool:
    if step.action == RememberTool.name:
        return step.status == AgentStep.Status.DONE
    notes = [note for note in step.notes if note["kind"] == StatusKind.MEMORY]
    return any(note.get("saved") or note.get("suggested") for note in notes)
