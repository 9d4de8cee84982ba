"""Memories and experiences as a capability: a question gets what fits it, with a note why."""

from collections.abc import Sequence
from typing import Any

from agents.db import database
from agents.engine.events import StatusKind
from agents.engine.loop import Capability, RunLoop
from agents.engine.prompt_parts import PromptPart
from agents.models import Agent, Experience, Memory, Run

from . import outcomes
from .recall import AnyNote, compose, recall
from .user_requests import Request


class Recall(Capability):
    """Recalls the notes that fit the question, and confirms what was asked to be remembered.

    They come after the history, so that what is before them stays the same for a cache.
    """

    def __init__(
        self, run: Run, agent: Agent, notes: Sequence[AnyNote], request: Request | None = None
    ) -> None:
        self.run_id = None if run.is_draft_run else run.pk
        self.agent = agent
        self.notes = notes
        self.request = request

    async def instructions(self, run: RunLoop) -> list[PromptPart]:
        request = self.request
        query = run.run_state.query
        recalled = await recall(self.notes, query, self.agent, run.agent.planner.count_tokens)
        # Also by rules added since.
        accepts = run.agent.guardrails.accepts
        used = [note for note in recalled if accepts(note.whole_text)]
        text = compose(used, [request.line] if request else [])
        if not text:
            return []
        memories = [note for note in used if isinstance(note.note, Memory)]
        learned = [note for note in used if isinstance(note.note, Experience)]
        if memories or request:
            memory_note: dict[str, Any] = {"kind": StatusKind.MEMORY}
            if memories:
                memory_note["used"] = [note.to_json() for note in memories]
            if request:
                memory_note |= request.to_note()
            run.add_note(memory_note)
        if learned:
            used_experiences = [note.to_json() for note in learned]
            run.add_note({"kind": StatusKind.EXPERIENCE, "used": used_experiences})
            if self.run_id is not None:
                ids = [note.note.pk for note in learned]
                await database.run(outcomes.record_use, self.run_id, ids)
        return [PromptPart(source="memory", text=text, is_recalled=True)]
