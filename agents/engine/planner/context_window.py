"""What of a conversation goes into a request: always legal, and never more than fits."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.engine.state import Message, question_indexes, repair_history

MIN_OBSERVATION_CHARS = 500
MESSAGE_OVERHEAD_TOKENS = 4  # tokens that a provider spends on a message beside its words
_UNCOUNTED_FIELDS = {"role", "content", "tool_call_id", "model"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMessages:
    """`dropped` messages were left out, and `shortened` observations lost their middle."""

    messages: list[Message]
    dropped: int = 0
    shortened: int = 0


def fit(
    messages: Sequence[Message], most_tokens: int | None, count: Callable[[str], int]
) -> FittedMessages:
    """The newest whole exchanges that fit. The last one stays; what it saw may be shortened."""
    history = [
        _repair_arguments(message)
        for message in repair_history(messages)
        if not _is_empty(message)
    ]
    if most_tokens is None:
        return FittedMessages(messages=history)
    sizes = [_token_count(message, count) for message in history]
    start = _first_fitting(history, sizes, most_tokens)
    kept, excess = history[start:], sum(sizes[start:]) - most_tokens
    if excess <= 0:
        return FittedMessages(messages=kept, dropped=start)
    shorter = _shorten_observations(kept, excess / max(1, sum(sizes[start:])))
    changed = sum(old is not new for old, new in zip(kept, shorter, strict=True))
    return FittedMessages(messages=shorter, dropped=start, shortened=changed)


def _first_fitting(history: Sequence[Message], sizes: Sequence[int], most: int) -> int:
    """Where to begin: at a question, never in the middle of an exchange."""
    begins = question_indexes(history)
    for at in begins:
        if sum(sizes[at:]) <= most:
            return at
    return begins[-1] if begins else 0


def _shorten_observations(messages: Sequence[Message], share: float) -> list[Message]:
    """Take this share, and a little more, out of the middle of what tools said."""
    return [
        {**message, "content": _cut_middle(message["content"], share)}
        if message["role"] == "tool" and len(message["content"]) > MIN_OBSERVATION_CHARS
        else message
        for message in messages
    ]


def _cut_middle(text: str, share: float) -> str:
    keep = max(MIN_OBSERVATION_CHARS, int(len(text) * (1 - share) * 0.9)) // 2
    left_out = len(text) - 2 * keep
    return f"{text[:keep]}\n[… {left_out:,} characters left out …]\n{text[-keep:]}"


def _repair_arguments(message: Message) -> Message:
    """Arguments nobody can read break every later request at some providers."""
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


def _token_count(message: Message, count: Callable[[str], int]) -> int:
    """Its tokens; calls, and thinking that is sent back, count like words."""
    more = {name: value for name, value in message.items() if name not in _UNCOUNTED_FIELDS}
    others = count(json.dumps(more, ensure_ascii=False)) if more else 0
    return MESSAGE_OVERHEAD_TOKENS + count(message.get("content") or "") + others
