"""A model's reasoning in the form its provider expects back.

Anthropic signs blocks, Gemini signs calls, OpenRouter lists details, DeepSeek and Kimi reject a
call without its reasoning. It is returned unchanged, to the model it came from. Reasoning in a
field named `reasoning` is only displayed, because providers that use that name reject or don't
need it in a request.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from agents.engine.state import Message, replace_surrogates

from .json_shapes import MAPPING_TYPES, as_list, mappings, text_or_empty

TextKind = Literal["thought", "answer"]

PROVIDER_CALL_FIELDS = ("provider_specific_fields", "extra_content")
_MESSAGE_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")
_CALL_FIELDS = ("id", "type", "function")
_TEXT_FIELDS = ("text", "summary")


class ReasoningCollector:
    """Collects the reasoning from the chunks of one turn."""

    def __init__(self) -> None:
        self._blocks: list[Mapping[str, Any]] = []
        self._details: list[Mapping[str, Any]] = []
        self._signatures: list[str] = []
        self._texts: list[str] = []

    def feed(self, delta: Mapping[str, Any]) -> None:
        if text := delta.get("reasoning_content"):
            self._texts.append(text_or_empty(text))
        if blocks := delta.get("thinking_blocks"):
            self._blocks += mappings(blocks)
        if details := delta.get("reasoning_details"):
            self._details += mappings(details)
        if fields := delta.get("provider_specific_fields"):
            for field in mappings(fields):
                self._signatures += filter(
                    text_or_empty, as_list(field.get("thought_signatures"))
                )

    def message_fields(self, *, is_signed: bool) -> dict[str, Any]:
        """Return the assistant's message fields; plain text only if nothing is signed."""
        fields: dict[str, Any] = {}
        blocks: list[dict[str, Any]] = []
        texts: list[str] = []  # up to their signature: unsigned text isn't accepted back
        for fragment in self._blocks:
            if fragment.get("data"):
                blocks.append(dict(fragment))
                continue
            texts.append(text_or_empty(fragment.get("thinking")))
            if signature := text_or_empty(fragment.get("signature")):
                thinking = replace_surrogates("".join(texts))
                blocks.append(
                    {"type": "thinking", "thinking": thinking, "signature": signature}
                )
                texts = []
        if blocks:
            fields["thinking_blocks"] = blocks
        if details := _join_details(self._details):
            fields["reasoning_details"] = details
        if self._signatures:
            fields["provider_specific_fields"] = {"thought_signatures": self._signatures}
        text = "".join(self._texts)
        if text and not fields and not is_signed:
            fields["reasoning_content"] = replace_surrogates(text)
        return fields


def provider_call_fields(*fragments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provider's fields in the fragments of a call."""
    return {
        name: dict(value)
        for fragment in fragments
        for name in PROVIDER_CALL_FIELDS
        if (value := fragment.get(name)) and isinstance(value, MAPPING_TYPES)
    }


def message_for_model(message: Message, model: str) -> Message:
    """Return the message for this model: with its own reasoning and no other's."""
    if message.get("model") == model:
        return {name: value for name, value in message.items() if name != "model"}
    return portable_message(message)


def portable_message(message: Message) -> Message:
    """Return the message in a form any model can read."""
    bare = {name: message[name] for name in _MESSAGE_FIELDS if name in message}
    if calls := message.get("tool_calls"):
        bare["tool_calls"] = [
            {name: call[name] for name in _CALL_FIELDS if name in call} for call in calls
        ]
    return bare


def _join_details(fragments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Join fragments with the same type and index; encrypted ones are already whole."""
    details: dict[tuple[Any, ...], dict[str, Any]] = {}
    for position, fragment in enumerate(fragments):
        key: tuple[Any, ...] = (str(fragment.get("type")), str(fragment.get("index")))
        if fragment.get("data"):
            key = (position,)
        detail = details.setdefault(key, {name: [] for name in _TEXT_FIELDS})
        for name, value in fragment.items():
            if name in _TEXT_FIELDS:
                detail[name].append(text_or_empty(value))
            elif value is not None:
                detail[name] = value
    for detail in details.values():
        for name in _TEXT_FIELDS:
            if texts := detail.pop(name):
                detail[name] = replace_surrogates("".join(texts))
    return list(details.values())


class ThinkTagParser:
    """Separates thought from answer in text that starts with `<think>…</think>`."""

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._is_answer = False

    def feed(self, text: str) -> list[tuple[TextKind, str]]:
        """Return the text by kind, except for what may be half a tag."""
        if self._is_answer:
            return [("answer", text)]
        text = self._held + text
        self._held = ""
        if self._closing:
            return self._split_thought(text)
        bare = text.lstrip()
        for tag in ("<think>", "<thinking>"):
            if bare.startswith(tag):
                self._closing = f"</{tag[1:]}"
                return self._split_thought(bare.removeprefix(tag).lstrip())
            if tag.startswith(bare):
                self._held = text
                return []
        self._is_answer = True
        return [("answer", text)]

    def rest(self) -> list[tuple[TextKind, str]]:
        """Return held text that turned out to be no tag."""
        text = self._held
        self._held = ""
        return [("thought" if self._closing else "answer", text)] if text else []

    def _split_thought(self, text: str) -> list[tuple[TextKind, str]]:
        thought, closing, answer = text.partition(self._closing)
        if closing:
            self._is_answer = True
            pieces: list[tuple[TextKind, str]] = [
                ("thought", thought),
                ("answer", answer.lstrip()),
            ]
            return [piece for piece in pieces if piece[1]]
        # The end of the text may be the start of the tag.
        sizes = range(min(len(text), len(self._closing) - 1), 0, -1)
        overlap = next((size for size in sizes if text.endswith(self._closing[:size])), 0)
        sure = len(text) - overlap
        self._held = text[sure:]
        return [("thought", text[:sure])] if sure else []
