"""What of a conversation goes into a request: always legal, and never more than fits."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.engine.state import Message, legal, questions

LEAST_OBSERVATION = 500
OVERHEAD = 4  # tokens that a provider spends on a message beside its words
_UNCOUNTED = {"role", "content", "tool_call_id", "model"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """`dropped` messages were left out, and `shortened` observations lost their middle."""

    messages: list[Message]
    dropped: int = 0
    shortened: int = 0


def fit(
    messages: Sequence[Message], most_tokens: int | None, count: Callable[[str], int]
) -> Fitted:
    """The newest whole exchanges that fit. The last one stays; what it saw may be shortened."""
    history = [_mended(message) for message in legal(messages) if not _is_empty(message)]
    if most_tokens is None:
        return Fitted(messages=history)
    sizes = [_size(message, count) for message in history]
    start = _first_that_fits(history, sizes, most_tokens)
    kept, excess = history[start:], sum(sizes[start:]) - most_tokens
    if excess <= 0:
        return Fitted(messages=kept, dropped=start)
    shorter = _shortened(kept, excess / max(1, sum(sizes[start:])))
    changed = sum(old is not new for old, new in zip(kept, shorter, strict=True))
    return Fitted(messages=shorter, dropped=start, shortened=changed)


def _first_that_fits(history: Sequence[Message], sizes: Sequence[int], most: int) -> int:
    """Where to begin: at a question, never in the middle of an exchange."""
    begins = questions(history)
    for at in begins:
        if sum(sizes[at:]) <= most:
            return at
    return begins[-1] if begins else 0


def _shortened(messages: Sequence[Message], share: float) -> list[Message]:
    """Take this share, and a little more, out of the middle of what tools said."""
    return [
        {**message, "content": _cut(message["content"], share)}
        if message["role"] == "tool" and len(message["content"]) > LEAST_OBSERVATION
        else message
        for message in messages
    ]


def _cut(text: str, share: float) -> str:
    keep = max(LEAST_OBSERVATION, int(len(text) * (1 - share) * 0.9)) // 2
    left_out = len(text) - 2 * keep
    return f"{text[:keep]}\n[… {left_out:,} characters left out …]\n{text[-keep:]}"


def _mended(message: Message) -> Message:
    """Arguments nobody can read break every later request at some providers."""
    if not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": [_readable(call) for call in message["tool_calls"]]}


def _readable(call: Message) -> Message:
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


def _size(message: Message, count: Callable[[str], int]) -> int:
    """Its tokens; calls, and thinking that is sent back, count like words."""
    more = {name: value for name, value in message.items() if name not in _UNCOUNTED}
    others = count(json.dumps(more, ensure_ascii=False)) if more else 0
    return OVERHEAD + count(message.get("content") or "") + others
