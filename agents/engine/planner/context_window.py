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
    *("role", "content", "tool_call_id", "model", "attachments"),
    *("untrusted", "sources", "is_suspect"),
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
    history = [
        _repair_arguments(message)
        for message in repair_history(messages)
        if not _is_empty(message)
    ]
    if most_tokens is None:
        return FittedMessages(messages=history)
    sizes = [count_message_tokens(message, count) for message in history]
    start = _first_fitting(history, sizes, most_tokens)
    kept, size = history[start:], sum(sizes[start:])
    if size <= most_tokens:
        return FittedMessages(messages=kept, dropped=start)
    shorter, size = _drop_attachments(kept, size, most_tokens)
    if size > most_tokens:
        shorter = _shorten_observations(shorter, (size - most_tokens) / max(1, size))
    changed = sum(old is not new for old, new in zip(kept, shorter, strict=True))
    return FittedMessages(messages=shorter, dropped=start, shortened=changed)


def _first_fitting(history: Sequence[Message], sizes: Sequence[int], most: int) -> int:
    """Return the index to start from: a question, never the middle of an exchange."""
    begins = question_indexes(history)
    for at in begins:
        if sum(sizes[at:]) <= most:
            return at
    return begins[-1] if begins else 0


def _drop_attachments(
    messages: Sequence[Message], size: int, most: int
) -> tuple[list[Message], int]:
    """Leave out attachments, the oldest first, until the messages fit."""
    shorter = list(messages)
    for at, message in enumerate(shorter):
        if size > most and (refs := refs_of(message)):
            shorter[at] = message_attachments.drop(message)
            size -= token_count(refs)
    return shorter, size


def _shorten_observations(messages: Sequence[Message], share: float) -> list[Message]:
    """Cut this share, and a little more, from the middle of tool results."""
    return [
        {**message, "content": _cut_middle(message["content"], share)}
        if message["role"] == "tool" and len(message["content"]) > MIN_OBSERVATION_CHARS
        else message
        for message in messages
    ]


def _cut_middle(text: str, share: float) -> str:
    keep = max(MIN_OBSERVATION_CHARS, int(len(text) * (1 - share) * 0.9)) // 2 * 2
    return shorten_middle(text, keep, f"\n[… {len(text) - keep:,} characters cut …]\n")


def _repair_arguments(message: Message) -> Message:
    """Repair unparsable arguments, which make some providers reject every later request."""
    if not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": [_repair_call(call) for call in message["tool_calls"]]}


def _repair_call(call: Message) -> Message:
    function = call.get("function", {})
    try:
        is_object = isinstance(json.loads(function.get("arguments") or "{}"), dict)
    except ValueError:
        is_object = False
    return call if is_object else {**call, "function": {**function, "arguments": "{}"}}


def _is_empty(message: Message) -> bool:
    return message["role"] in {"user", "assistant"} and not (
        message.get("content") or message.get("tool_calls")
    )


def count_message_tokens(message: Message, count: Callable[[str], int]) -> int:
    """Return the message's tokens, including calls, reasoning and attachments."""
    more = {name: value for name, value in message.items() if name not in _UNCOUNTED_FIELDS}
    others = count(json.dumps(more, ensure_ascii=False)) if more else 0
    tokens = count(message.get("content") or "")
    if "attachments" in message:
        tokens += token_count(refs_of(message))
    return MESSAGE_OVERHEAD_TOKENS + tokens + others
