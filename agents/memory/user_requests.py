"""Saves what a user asks to remember in a message, when its run starts."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from agents.engine.guardrails import Guardrails
from agents.models import Agent, Memory, Run

from . import memories, policy, statements, texts
from .errors import NoteRejected
from .statements import subject_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What became of a request: saved, or why not."""

    memory: Memory | None = None
    reason: str = ""

    def to_note(self) -> dict[str, Any]:
        if self.memory is None:
            return {"refused": self.reason}
        outcome = "suggested" if self.is_suggested else "saved"
        return {outcome: [{"id": self.memory.pk, "text": self.memory.text}]}

    @property
    def is_suggested(self) -> bool:
        return self.memory is not None and self.memory.status == Memory.Status.PROPOSED

    @property
    def line(self) -> str:
        """What the agent is told, so that it can confirm it."""
        if self.memory is None:
            return f"- Not saved, although the user asked for it: {self.reason}"
        quoted = self.memory.text.replace('"', "'")
        if self.is_suggested:
            return f'- Suggested to the user, who decides whether to save it: "{quoted}"'
        return f'- Saved just now, because the user asked for it: "{quoted}"'


def save_requested(run: Run, agent: Agent, guardrails: Guardrails) -> Request | None:
    """Save what the run's message asks to remember; None if it asks for nothing.

    What the user may not have written themselves is only suggested: it came from an import or
    another member and was answered again, or it is part of a quotation.
    """
    if run.is_rerun or not policy.is_possible(run, agent):
        return None
    if not (text := statements.stated(run.query)):
        return None
    saved = Memory.objects.filter(run=run, source=Memory.Source.STATED).first()
    if saved is not None:  # the run was resumed; what was undone stays so
        return Request(memory=saved)
    try:
        memory = policy.new_memory(run, agent)
        memory.text = screened(guardrails, text)
        memory.subject = subject_of(memory.text)
        memory.kind = statements.kind_of(memory.text)
        memory.source = Memory.Source.STATED
        if run.is_repeated or statements.may_be_quoted(run.query):
            memory.reason = _("These may not be your own words.")
        return Request(memory=memories.save(memory))
    except NoteRejected as reason:
        return Request(reason=str(reason))


def screened(guardrails: Guardrails, text: str) -> str:
    """Return the text on one line if it passes the guardrails of a message."""
    cleaned = texts.clean_memory(text, 2 * Memory.MAX_CHARS)
    inspected = guardrails.without_length_limits().inspect(cleaned, "input")
    if inspected.is_blocked or inspected.text != cleaned:
        raise NoteRejected(_("A guardrail blocked this text."))
    return cleaned
