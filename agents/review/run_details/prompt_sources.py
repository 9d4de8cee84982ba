"""What a request to a model contains: from where, and how many tokens each part took."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from agents.engine import prompt_parts
from agents.engine.events import StatusKind
from agents.engine.state import Message, question_indexes
from agents.llm import tokens
from agents.models import Experience

MAX_CHARS = 1_000_000  # counting more would take too long for a page
# In the order in which a request has them.
ORDER = (
    *("agent", "documents", "profile", "project", "caller", "tools", "summary", "history"),
    *("memory", "project_memory", "experiences", "files", "question", "passages", "results"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSource:
    """One source of a request's text."""

    source: str
    tokens: int
    share: int  # of all tokens, in percent
    memories: Sequence[dict[str, Any]] = ()  # that were used, and why
    experiences: Sequence[dict[str, Any]] = ()  # the same

    @property
    def label(self) -> str:
        return source_label(self.source)


def source_label(source: str) -> str:
    labels = {
        "agent": _("Agent's instructions"),
        "profile": _("Custom instructions (profile)"),
        "project": _("Project instructions"),
        "caller": _("Instructions of the calling program"),
        "documents": _("Searchable documents"),
        "memory": _("Memory"),
        "project_memory": _("Project memory"),
        "experiences": _("Lessons"),
        "tools": _("Tool definitions"),
        "summary": _("Summary of earlier turns"),
        "history": _("Earlier turns"),
        "files": _("Attached files"),
        "question": _("Question"),
        "passages": _("Retrieved passages"),
        "results": _("Tool calls and results"),
    }
    return labels.get(source, source)


def prompt_sources(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    notes: Sequence[dict[str, Any]],
) -> list[PromptSource]:
    """Return where the text of a request comes from."""
    texts: dict[str, list[str]] = {}
    for source, text in _texts(messages, tools):
        texts.setdefault(source, []).append(text)
    if sum(len(text) for source_texts in texts.values() for text in source_texts) > MAX_CHARS:
        return []
    token_counts = {
        source: sum(map(tokens.count, source_texts)) for source, source_texts in texts.items()
    }
    total = max(1, sum(token_counts.values()))
    memories: dict[str, list[dict[str, Any]]] = {"memory": [], "project_memory": []}
    for note in notes:
        if note["kind"] == StatusKind.MEMORY:
            for memory in note.get("used", ()):
                source = "memory" if memory.get("project") is None else "project_memory"
                memories[source].append(memory)
    return [
        PromptSource(
            source=source,
            tokens=token_counts[source],
            share=round(100 * token_counts[source] / total),
            memories=[_explained(memory) for memory in memories.get(source, ())],
            experiences=used_experiences(notes) if source == "experiences" else (),
        )
        for source in ORDER
        if token_counts.get(source)
    ]


def _texts(
    messages: Sequence[Message], tools: Sequence[dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    question_index = (question_indexes(messages) or [len(messages)])[-1]
    for index, message in enumerate(messages):
        text = str(message.get("content") or "")
        if calls := message.get("tool_calls"):
            text += json.dumps(calls, ensure_ascii=False)
        if index == question_index:
            source = "question"
        else:
            source = "history" if index < question_index else "results"
        if message["role"] in {"system", "user"}:
            own_source = "agent" if message["role"] == "system" else source
            for prompt_part in prompt_parts.split(text):
                is_own = prompt_part.source == "agent"
                yield own_source if is_own else prompt_part.source, prompt_part.text
        elif text:
            yield source, text
    if tools:
        yield "tools", json.dumps(list(tools), ensure_ascii=False)


def used_experiences(notes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the experiences that a request got, and why."""
    kinds = dict(Experience.Kind.choices)
    return [
        {
            **_explained(experience),
            "kind_label": kinds.get(experience["kind"], experience["kind"]),
        }
        for note in notes
        if note["kind"] == StatusKind.EXPERIENCE
        for experience in note["used"]
    ]


def _explained(memory: dict[str, Any]) -> dict[str, Any]:
    reasons = {
        "preference": _("preference"),
        "words": _("same words: %(words)s") % {"words": ", ".join(memory["matched"])},
        "meaning": _("similar meaning"),
    }
    return {**memory, "reason": reasons.get(memory["why"], memory["why"])}
