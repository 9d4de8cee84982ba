"""Fits the history into the context window: always valid, never too long."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.engine.attachments import refs_of, token_count
from agents.engine.state import Message, question_indexes, repair_history
from agents.engine.text import shorten_middle

from . import message_attachments

MIN_OBSERVATION_CHARS = 500
MESSAGE_OVERHEAD_TOKENS = 4  # tokens a provider adds per message
_UNCOUNTED_FIELDS = {
    "attachments",
    "content",
    "is_suspect",
    "model",
    "role",
    "sources",
    "tool_call_id",
    "untrusted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMessages:
    """The messages that fit, with the number of dropped messages and shortened observations."""

    messages: list[Message]
    dropped: int = 0
    shortened: int = 0


def fit(
    messages: Sequence[Message], most_tokens: int | None, count: Callable[[str], int]
) -> FittedMessages:
    """Keep the newest exchanges that fit; the last one stays, shortened if needed."""
    history: list[Message] = []
    for message in repair_history(messages):
        if calls := message.get("tool_calls"):
            history.append({**message, "tool_calls": [_repair_call(call) for call in calls]})
        elif message.get("content") or message["role"] not in {"user", "assistant"}:
            history.append(message)
    if most_tokens is None:
        return FittedMessages(messages=history)
    sizes = [count_message_tokens(message, count) for message in history]
    # From a question on, never from the middle of an exchange.
    starts = question_indexes(history) or [0]
    start = next((i for i in starts if sum(sizes[i:]) <= most_tokens), starts[-1])
    size = sum(sizes[start:])
    newest = history[start:]
    if size <= most_tokens:
        return FittedMessages(messages=newest, dropped=start)
    shorter = list(newest)
    # Attachments are left out first, the oldest ones before others.
    for index, message in enumerate(shorter):
        if size > most_tokens and (refs := refs_of(message)):
            shorter[index] = message_attachments.drop(message)
            size -= token_count(refs)
    if size > most_tokens:
        # This share, and a little more, is cut from the middle of tool results.
        share = (size - most_tokens) / max(1, size)
        for index, message in enumerate(shorter):
            text = message["content"]
            if message["role"] == "tool" and len(text) > MIN_OBSERVATION_CHARS:
                kept_chars = int(len(text) * (1 - share) * 0.9)
                kept_chars = max(MIN_OBSERVATION_CHARS, kept_chars) // 2 * 2
                gap = f"\n[… {len(text) - kept_chars:,} characters cut …]\n"
                shorter[index] = {**message, "content": shorten_middle(text, kept_chars, gap)}
    changed = sum(old is not new for old, new in zip(newest, shorter, strict=True))
    return FittedMessages(messages=shorter, dropped=start, shortened=changed)


def _repair_call(call: Message) -> Message:
    """Repair unparsable arguments, which make some providers reject every later request."""
    function = call.get("function", {})
    try:
        is_object = isinstance(json.loads(function.get("arguments") or "{}"), dict)
    except ValueError:
        is_object = False
    return call if is_object else {**call, "function": {**function, "arguments": "{}"}}


def count_message_tokens(message: Message, count: Callable[[str], int]) -> int:
    """Return the message's tokens, including calls, reasoning and attachments."""
    tokens = MESSAGE_OVERHEAD_TOKENS + count(message.get("content") or "")
    fields = {name: value for name, value in message.items() if name not in _UNCOUNTED_FIELDS}
    if fields:
        tokens += count(json.dumps(fields, ensure_ascii=False))
    if "attachments" in message:
        tokens += token_count(refs_of(message))
    return tokens
