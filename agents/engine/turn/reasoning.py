"""What a model thought, in the form in which its provider wants it back.

Anthropic signs blocks, Gemini signs calls, OpenRouter lists details, DeepSeek and Kimi refuse
a call whose thoughts are missing. None of it is ours to read or to change: it goes back as it
came, to the model that it came from. Thoughts named `reasoning` are only shown, because who
names them so refuses them in a request or does without.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from agents.engine.state import Message, sendable

from .json_shapes import MAPPING, listed, mappings, text

Kind = Literal["thought", "answer"]

ON_CALLS = ("provider_specific_fields", "extra_content")
_PLAIN = ("role", "content", "tool_calls", "tool_call_id", "name")
_PLAIN_CALL = ("id", "type", "function")
_JOINED = ("text", "summary")


class Thoughts:
    """Collects it from the chunks of one turn."""

    def __init__(self) -> None:
        self._blocks: list[Mapping[str, Any]] = []
        self._details: list[Mapping[str, Any]] = []
        self._signatures: list[str] = []
        self._words: list[str] = []

    def feed(self, delta: Mapping[str, Any]) -> None:
        if words := delta.get("reasoning_content"):
            self._words.append(text(words))
        if blocks := delta.get("thinking_blocks"):
            self._blocks += mappings(blocks)
        if details := delta.get("reasoning_details"):
            self._details += mappings(details)
        if fields := delta.get("provider_specific_fields"):
            for field in mappings(fields):
                self._signatures += filter(text, listed(field.get("thought_signatures")))

    def kept(self, *, is_signed: bool) -> dict[str, Any]:
        """What the assistant's message carries on; words alone only where nothing is signed."""
        kept: dict[str, Any] = {}
        if blocks := _blocks(self._blocks):
            kept["thinking_blocks"] = blocks
        if details := _details(self._details):
            kept["reasoning_details"] = details
        if self._signatures:
            kept["provider_specific_fields"] = {"thought_signatures": self._signatures}
        words = "".join(self._words)
        if words and not kept and not is_signed:
            kept["reasoning_content"] = sendable(words)
        return kept


def on_call(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """What a fragment of a call carries beside the call."""
    return {
        name: dict(value)
        for part in parts
        for name in ON_CALLS
        if (value := part.get(name)) and isinstance(value, MAPPING)
    }


def own(message: Message, model: str) -> Message:
    """The message as this model is sent it: with its own thinking, and nobody else's."""
    if message.get("model") == model:
        return {name: value for name, value in message.items() if name != "model"}
    return plain(message)


def plain(message: Message) -> Message:
    """The message as any model can read it."""
    bare = {name: message[name] for name in _PLAIN if name in message}
    if calls := message.get("tool_calls"):
        bare["tool_calls"] = [
            {name: call[name] for name in _PLAIN_CALL if name in call} for call in calls
        ]
    return bare


def _blocks(fragments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Words come in fragments and a signature ends them; nobody takes unsigned words back."""
    blocks: list[dict[str, Any]] = []
    words: list[str] = []
    for fragment in fragments:
        if fragment.get("data"):
            blocks.append(dict(fragment))
            continue
        words.append(text(fragment.get("thinking")))
        if signature := text(fragment.get("signature")):
            said = sendable("".join(words))
            blocks.append({"type": "thinking", "thinking": said, "signature": signature})
            words = []
    return blocks


def _details(fragments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fragments of one kind at one index are one detail; what is encrypted comes whole."""
    details: dict[tuple[Any, ...], dict[str, Any]] = {}
    for at, fragment in enumerate(fragments):
        is_whole = bool(fragment.get("data"))
        key = (at,) if is_whole else (str(fragment.get("type")), str(fragment.get("index")))
        detail = details.setdefault(key, {name: [] for name in _JOINED})
        for name, value in fragment.items():
            if name in _JOINED:
                detail[name].append(text(value))
            elif value is not None:
                detail[name] = value
    return [_joined(detail) for detail in details.values()]


def _joined(detail: Mapping[str, Any]) -> dict[str, Any]:
    words = {name: sendable("".join(detail[name])) for name in _JOINED if detail[name]}
    return {name: value for name, value in detail.items() if name not in _JOINED} | words


class ThinkTag:
    """Tells thought from answer where both are one text, which begins `<think>…</think>`."""

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._is_answer = False

    def feed(self, words: str) -> list[tuple[Kind, str]]:
        """The words by their kind, but for those that may be half of a tag."""
        if self._is_answer:
            return [("answer", words)]
        held, self._held = self._held + words, ""
        return self._think(held) if self._closing else self._begin(held)

    def rest(self) -> list[tuple[Kind, str]]:
        """What was held back and turned out to be no tag."""
        held, self._held = self._held, ""
        return [("thought" if self._closing else "answer", held)] if held else []

    def _begin(self, words: str) -> list[tuple[Kind, str]]:
        bare = words.lstrip()
        for tag in ("<think>", "<thinking>"):
            if bare.startswith(tag):
                self._closing = f"</{tag[1:]}"
                return self._think(bare.removeprefix(tag).lstrip())
            if tag.startswith(bare):
                self._held = words
                return []
        self._is_answer = True
        return [("answer", words)]

    def _think(self, words: str) -> list[tuple[Kind, str]]:
        thought, closing, answer = words.partition(self._closing)
        if closing:
            self._is_answer = True
            return _said(thought=thought, answer=answer.lstrip())
        sure = len(words) - _overlap(words, self._closing)
        self._held = words[sure:]
        return _said(thought=words[:sure])


def _said(thought: str, answer: str = "") -> list[tuple[Kind, str]]:
    pieces: list[tuple[Kind, str]] = [("thought", thought), ("answer", answer)]
    return [piece for piece in pieces if piece[1]]


def _overlap(words: str, tag: str) -> int:
    """How much of the end of these words may be the beginning of the tag."""
    sizes = range(min(len(words), len(tag) - 1), 0, -1)
    return next((size for size in sizes if words.endswith(tag[:size])), 0)
