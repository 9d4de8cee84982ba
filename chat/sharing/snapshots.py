"""Builds the masked copy of a chat that visitors of a public link read.

Everything that isn't shared is left out before the copy is saved, not when it is displayed. A
text is the `content` of a message with a role, so that erasure recognizes even short ones.
"""

from typing import Any

from django.contrib.auth.models import User

from agents.access import masking
from agents.access.masking import Masker
from agents.engine.loop import StopReason
from agents.models import AgentStep, Run
from agents.web.presentation import RunView, StepView
from chat import attachments
from chat.models import ChatSession, PublicLink
from chat.sessions import conversation

SCHEMA = "ashiato.public_chat/1"
MAX_CHARS = 4_000_000
MAX_STEP_CHARS = 20_000

Level = PublicLink.Level


class SnapshotTooLarge(Exception):
    """Raised when a chat is too long to be published."""


def build(chat: ChatSession, level: str, viewer: User) -> dict[str, Any]:
    """Return the visible part of a chat for a level; raise SnapshotTooLarge.

    Answers in progress aren't included.
    """
    authors: dict[int, int] = {}
    entries: list[dict[str, Any]] = []
    chars_left = MAX_CHARS
    for message in conversation.visible_messages(chat, viewer):
        if message.run is not None and message.run.is_live:
            continue
        question = {
            "role": "user",
            "content": masking.mask_text(message.text),
            # A number instead of the name.
            "author": authors.setdefault(message.author_id, len(authors) + 1),
            "at": message.created_at.isoformat(),
        }
        if message.has_files:  # their content isn't shared, because it can't be masked
            files = attachments.sent_with(message.pk)
            question["files"] = [masking.mask_text(row.name) for row in files]
        entries.append(question)
        chars_left -= _text_chars(question)
        if message.run is not None:
            answer = _answer(message.run, level)
            entries.append(answer)
            chars_left -= _text_chars(answer)
            chars_left -= sum(map(_text_chars, answer["steps"]))
        if chars_left < 0:
            raise SnapshotTooLarge
    title = masking.mask_text(chat.title)
    return {"schema": SCHEMA, "title": title, "authors": len(authors), "messages": entries}


def _answer(run: Run, level: str) -> dict[str, Any]:
    masked = masking.mask_row(run)
    view = RunView(masked, "shared", may_decide=False, masker=Masker())
    correction = view.correction.review.correction if view.correction else ""
    # Why a run failed may name servers, accounts or rules; its status says that it did.
    says_why = level == Level.DETAILS and run.stopped_reason != StopReason.BLOCKED
    return {
        "role": "assistant",
        "content": masked.answer,
        "output": view.output_text,
        "correction": masking.mask_text(correction) if correction else "",
        "sentence": view.sentence if says_why else "",
        "status": run.status,
        "agent": run.agent_name,
        "model": run.model,
        "at": run.started_at.isoformat(),
        "steps": []
        if level == Level.ANSWERS
        else [_step(step, level == Level.DETAILS) for step in view.steps],
    }


def _step(step: StepView, has_details: bool) -> dict[str, Any]:
    entry = {
        "number": step.number,
        "kind": step.kind,
        "status": step.status,
        "depth": step.depth,
        "agent": step.agent_name,
        "action": step.action if step.kind == "tool" else "",
        "duration_ms": step.duration_ms,
    }
    if not has_details:
        return entry
    # Which rule a guardrail has is nobody else's business.
    is_guardrail = step.kind == AgentStep.Kind.GUARDRAIL
    return entry | {
        "intent": "" if is_guardrail else step.intent,
        "thought": step.thought[:MAX_STEP_CHARS],
        "input": step.input_text[:MAX_STEP_CHARS] if step.kind == "tool" else "",
        "result": "" if is_guardrail else step.result_text[:MAX_STEP_CHARS],
        "files": [f"{file.kind_label}: {file.label}" for file in step.files],
    }


def _text_chars(entry: dict[str, Any]) -> int:
    return sum(len(value) for value in entry.values() if isinstance(value, str))
