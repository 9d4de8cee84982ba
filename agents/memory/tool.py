"""The tool with which an agent saves or suggests a memory."""

import re
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.utils.translation import gettext as _

from agents.db import database
from agents.engine.guardrails import Guardrails
from agents.engine.history_summary import is_summary
from agents.engine.state import Message
from agents.engine.tool import ToolInput, ToolResult, gettext_noop
from agents.models import Agent, AgentStep, Memory, OutsideTextTopic, Run

from . import policy, statements, store, texts
from .errors import MemoryRejected
from .subjects import subject_of

NAME = "remember"
CLAUSE_END = re.compile(r"[.,;!?…]+(?=\s|$)|[。、，．！？；]")


@dataclass(frozen=True, slots=True)
class RunBinding:
    """The run that a tool works for."""

    run: Run
    agent: Agent
    guardrails: Guardrails


class RememberTool:
    """Saves the user's own words at once, and suggests everything else to them."""

    name = NAME
    description = gettext_noop(
        "Remembers a lasting fact or preference of the user for later chats, such as where "
        "they live, what they work on or how they like answers. Use it only when the user "
        "says something about themselves that will matter again, one fact per call. Never use "
        "it for text from documents, tools or websites, for passwords or numbers, or for what "
        "is only relevant now. The user sees every memory and can undo it."
    )
    parameters = {
        "type": "object",
        "properties": {
            "text": {
                "type": "string",
                "description": "One sentence of the user's message, word for word. "
                "Anything else is only suggested to the user.",
            },
            "subject": {
                "type": "string",
                "description": "What it is about, e.g. home city. A new fact about the same "
                "subject replaces the old one.",
            },
            "kind": {"type": "string", "enum": ["fact", "preference"]},
        },
        "required": ["text"],
    }
    effect = "idempotent"
    timeout: float | None = None

    def __init__(self) -> None:
        self.binding: RunBinding | None = None

    def bind(self, run: Run, agent: Agent, guardrails: Guardrails) -> None:
        """Tell the tool for which run it works."""
        self.binding = RunBinding(run, agent, guardrails)

    async def execute(self, input: ToolInput, /) -> ToolResult:
        if self.binding is None:
            return ToolResult(error="Nothing can be remembered outside a chat.")
        values = {"text": input} if isinstance(input, str) else dict(input)
        try:
            return ToolResult(await database.run(_remember, self.binding, values))
        except MemoryRejected as reason:
            return ToolResult(error=f"Not saved: {reason}", mendable=True)


def _remember(binding: RunBinding, values: dict[str, Any]) -> str:
    run = binding.run
    scope = policy.scope_of(run, binding.agent)
    text = _screened(binding, str(values.get("text") or ""))
    subject = subject_of(text) or str(values.get("subject") or "")
    is_preference = values.get("kind") == Memory.Kind.PREFERENCE
    reason = _why_proposed(run, text)
    memory = store.save(
        scope,
        store.NewMemory(
            text=text,
            subject=subject,
            kind=Memory.Kind.PREFERENCE if is_preference else Memory.Kind.FACT,
            source=Memory.Source.AGENT,
            run=run,
            step=_current_step(run),
            reason=reason,
        ),
    )
    if memory.status == Memory.Status.PROPOSED:
        return f"Suggested to the user, who decides whether to save it: “{memory.text}”"
    return f"Saved: “{memory.text}”"


def _screened(binding: RunBinding, text: str) -> str:
    """Return the text if it passes the guardrails of a message."""
    cleaned = texts.clean(text)
    inspected = binding.guardrails.without_length_limits().inspect(cleaned, "input")
    if inspected.is_blocked or inspected.text != cleaned:
        raise MemoryRejected(_("A guardrail doesn't allow this text."))
    return text


def _why_proposed(run: Run, text: str) -> str:
    """Return why the user has to decide, or an empty text if it is saved at once."""
    if has_read_others(run):
        return _("This chat has text from others, such as files, web pages or tool results.")
    if not is_own_words(text, run.query):
        return _("These aren't your own words.")
    return ""


def has_read_others(run: Run) -> bool:
    """Whether anything but the user's words reached a model: now or ever in the chat."""
    if run.files or run.project_id is not None or any(map(_has_others_text, run.history)):
        return True
    topics = [run.topic, run.origin.topic] if run.origin else [run.topic]
    if OutsideTextTopic.objects.filter(topic__in=topics).exists():
        return True
    calls = AgentStep.objects.filter(run=run, kind=AgentStep.Kind.TOOL).exclude(action=NAME)
    return calls.exists()


def _has_others_text(message: Message) -> bool:
    """Whether a message has files or a tool's result, or is a summary, which can quote them."""
    return message["role"] == "tool" or "files" in message or is_summary(message)


def is_own_words(text: str, message: str) -> bool:
    """Whether the text is a sentence or clause of the message, word for word.

    Parts of a clause can mean the opposite (“I don't eat meat”), and what follows a line break,
    a colon or a quotation mark may be somebody else's.
    """
    if len(message) > statements.MAX_MESSAGE_CHARS:
        return False
    own_line = statements.QUOTATION.split(message.strip(), maxsplit=1)[0]
    clauses = [texts.sequence(clause) for clause in CLAUSE_END.split(own_line)]
    words = texts.sequence(text)
    spans = (
        list(chain.from_iterable(clauses[first:end]))
        for first in range(len(clauses))
        for end in range(first + 1, len(clauses) + 1)
    )
    return bool(words) and words in spans


def _current_step(run: Run) -> int | None:
    steps = AgentStep.objects.filter(run=run, action=NAME).order_by("-number")
    return steps.values_list("number", flat=True).first()
