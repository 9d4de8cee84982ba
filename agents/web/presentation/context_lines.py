"""Quiet lines above an answer: what the model got besides the question."""

from collections.abc import Iterator, Sequence
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
    return [line for step in steps if step.step.notes for line in _lines(step)]


def _lines(step: StepView) -> Iterator[ContextLine]:
    if step.step.parent is not None:
        return
    for note in step.step.notes:
        if note["kind"] == StatusKind.COMPACTION and "replaced" in note:
            yield ContextLine(sentence=step_notes.note_sentence(note), href=step.detail_href)
        if note["kind"] == StatusKind.EXPERIENCE:
            sentence = step_notes.experience_sentence(note)
            yield ContextLine(sentence=sentence, href=step.detail_href)
        if note["kind"] == StatusKind.MEMORY and (note.get("used") or note.get("refused")):
            # What was saved has a card of its own.
            about = {name: note[name] for name in ("used", "refused") if name in note}
            sentence = " ".join(step_notes.memory_sentences(about))
            yield ContextLine(sentence=sentence, href=step.detail_href)
