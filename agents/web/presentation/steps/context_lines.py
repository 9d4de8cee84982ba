"""Quiet lines above an answer: what the model got besides the question."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine.events import StatusKind

from . import step_notes
from .step_view import StepView


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLine:
    """A sentence, and the step that has the details."""

    sentence: str
    href: str


def context_lines(steps: Sequence[StepView]) -> list[ContextLine]:
    """Return the lines of a run, as its steps have noted them."""
    lines: list[ContextLine] = []
    for step in steps:
        if not step.step.notes or step.step.parent is not None:
            continue
        for note in step.step.notes:
            if note["kind"] == StatusKind.COMPACTION and "replaced" in note:
                sentence = step_notes.note_sentence(note)
            elif note["kind"] == StatusKind.EXPERIENCE:
                sentence = step_notes.experience_sentence(note)
            elif note["kind"] == StatusKind.MEMORY and (
                note.get("used") or note.get("refused")
            ):
                # What was saved has a card of its own.
                facts = {name: note[name] for name in ("used", "refused") if name in note}
                sentence = " ".join(step_notes.memory_sentences(facts))
            else:
                continue
            lines.append(ContextLine(sentence=sentence, href=step.detail_href))
    return lines
