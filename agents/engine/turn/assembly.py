"""Streamed chunks → one model turn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.engine.state import Message

from .json_shapes import LIST, MAPPING, listed, mappings, text
from .reasoning import Kind, ThinkTag, Thoughts
from .tool_calls import Calls, ToolCall

__all__ = [
    "Assembler",
    "Chunk",
    "PlanResult",
    "Shown",
    "ToolCall",
    "Turn",
    "Words",
    "assemble",
]

Chunk = Mapping[str, Any]
Shown = tuple[Kind, str]

REFUSED = "The model declined to answer."
CAVEATS = {
    "length": "The answer was cut off at the output limit of the model.",
    "content_filter": "The answer was cut off by a filter of the model's provider.",
}


class Words(dict[str, Any]):
    """A chunk that holds words of the answer and nothing else, so that nobody has to look.

    Most chunks are such. Whoever does look finds what any other chunk has.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        super().__init__(id=None, choices=[choice])
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the model said in one go.

    `kept` is what its provider wants to see again in the assistant's message.
    """

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    is_refusal: bool = False
    kept: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_cut(self) -> bool:
        return self.finish_reason in CAVEATS

    @property
    def caveat(self) -> str:
        """What a person should know of the answer: that it is a refusal, or not the whole."""
        return REFUSED if self.is_refusal else CAVEATS.get(self.finish_reason or "", "")

    def message(self, calls: Sequence[ToolCall] = ()) -> Message:
        """The turn as history keeps it, with those of its calls that are made."""
        made = {"tool_calls": [call.wire() for call in calls]} if calls else {}
        return {"role": "assistant", "content": self.content or None, **made, **self.kept}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """What the model decided. `action` None means that `final_answer` holds the answer.

    `calls` are all the calls of the turn, `action` and `action_input` the first of them.
    """

    thought: str = ""
    action: str | None = None
    action_input: Any = None
    final_answer: str | None = None
    calls: tuple[ToolCall, ...] = ()
    turn: Turn = field(default_factory=Turn)


def assemble(chunks: Iterable[Chunk]) -> Turn:
    """The whole turn of a stream that has ended."""
    assembler = Assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.turn()


class Assembler:
    """Puts one turn together while its chunks arrive."""

    def __init__(self) -> None:
        self._texts: dict[Kind, list[str]] = {"thought": [], "answer": []}
        self._tag = ThinkTag()
        self._thinking = Thoughts()
        self._calls = Calls()
        self._finish_reason: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self._reply = ""
        self._is_refusal = False
        self._has_begun = False
        self._size = 0

    @property
    def size(self) -> int:
        """How many characters there are so far, in words and in calls."""
        return self._size + self._calls.size

    def feed(self, chunk: Chunk) -> list[Shown]:
        """Take a chunk, and give the text in it that a person may see."""
        if isinstance(chunk, Words):
            self._has_begun = True
            return self._put(self._tag.feed(chunk.text)) if chunk.text else []
        if not isinstance(chunk, MAPPING):
            return []
        choice = _first(chunk.get("choices"))
        self._note(chunk, choice)
        delta = choice.get("delta")
        if delta is None and not self._has_begun:
            delta = choice.get("message")
        if not isinstance(delta, MAPPING):
            return []
        self._has_begun = True
        if delta.get("tool_calls") or delta.get("function_call"):
            self._reply = str(chunk.get("id") or self._reply)
            self._calls.feed(delta)
        self._thinking.feed(delta)
        return self._show(delta)

    def rest(self) -> list[Shown]:
        """The text that was held back until it was clear that nothing more would come."""
        return self._put(self._tag.rest())

    def turn(self) -> Turn:
        """All that was said."""
        self.rest()
        calls = self._calls.whole(self._reply)
        return Turn(
            content="".join(self._texts["answer"]),
            reasoning="".join(self._texts["thought"]),
            tool_calls=calls,
            finish_reason=self._finish_reason,
            usage=self._usage,
            is_refusal=self._is_refusal,
            kept=self._thinking.kept(is_signed=any(call.kept for call in calls)),
        )

    def _note(self, chunk: Chunk, choice: Mapping[str, Any]) -> None:
        usage = chunk.get("usage") or choice.get("usage")
        if usage and isinstance(usage, Mapping):
            self._usage = usage
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self._finish_reason = reason

    def _show(self, delta: Mapping[str, Any]) -> list[Shown]:
        shown: list[Shown] = []
        if thought := _reasoning(delta):
            shown.append(("thought", thought))
        content = delta.get("content")
        if content and isinstance(content, str):
            shown += self._tag.feed(content)
        elif content:
            shown += self._in_parts(content)
        if refusal := delta.get("refusal"):
            shown += self._refused(text(refusal))
        return self._put(shown)

    def _in_parts(self, content: Any) -> Iterator[Shown]:
        """The texts in a list of typed parts; thinking may be a list of parts itself."""
        for part in listed(content):
            if isinstance(part, str):
                yield from self._tag.feed(part)
            elif isinstance(part, MAPPING):
                yield from (("thought", words) for words in _thoughts(part))
                if words := text(part.get("text")):
                    yield from self._tag.feed(words)
                yield from self._refused(text(part.get("refusal")))

    def _refused(self, words: str) -> list[Shown]:
        self._is_refusal = self._is_refusal or bool(words)
        return [("answer", words)] if words else []

    def _put(self, shown: list[Shown]) -> list[Shown]:
        for kind, words in shown:
            self._texts[kind].append(words)
            self._size += len(words)
        return shown


_NOTHING: Mapping[str, Any] = {}


def _first(choices: Any) -> Mapping[str, Any]:
    """Choice 0: we ask for one, and mixing in another would garble both."""
    if not isinstance(choices, LIST):
        return _NOTHING
    for at, choice in enumerate(choices):
        if isinstance(choice, MAPPING):
            index = choice.get("index")
            if (at if index is None else index) == 0:
                return choice
    return _NOTHING


def _reasoning(delta: Mapping[str, Any]) -> str:
    """The thinking in a delta, once: providers send it under two names at a time."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if (words := delta.get(name)) and isinstance(words, str):
            return words
    if blocks := delta.get("thinking_blocks"):
        return "".join(words for block in mappings(blocks) for words in _thoughts(block))
    if details := delta.get("reasoning_details"):
        said = (detail.get("text") or detail.get("summary") for detail in mappings(details))
        return "".join(map(text, said))
    return ""


def _thoughts(part: Mapping[str, Any]) -> list[str]:
    thinking = part.get("thinking")
    inner = [text(piece.get("text")) for piece in mappings(thinking)]
    return [words for words in (text(thinking), *inner) if words]
