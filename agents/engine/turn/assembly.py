"""Streamed chunks → one model turn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.engine.state import Message

from ..sentences import Sentence as _
from .json_shapes import LIST_TYPES, MAPPING_TYPES, as_list, mappings, text_or_empty
from .prompt_echo import PromptEchoFilter
from .reasoning import ReasoningCollector, TextKind, ThinkTagParser
from .repetition import RepetitionDetector
from .tool_calls import ToolCall, ToolCallAssembler
from .usage_report import has_counts, reported_usage

__all__ = [
    "KEEP_ALIVE",
    "Assembler",
    "Chunk",
    "PlanResult",
    "VisibleText",
    "ToolCall",
    "Turn",
    "TextChunk",
    "assemble",
    "has_content",
]

Chunk = Mapping[str, Any]
VisibleText = tuple[TextKind, str]

# Our own finish reasons: the stream was ended, or its text is no answer.
REPETITION = "repetition"
CALL_AS_TEXT = "call_as_text"
REFUSAL_NOTE = _("The model declined to answer.")
CAVEATS = {
    "length": _("The answer was cut off at the model's output limit."),
    "content_filter": _("The model provider's content filter cut off the answer."),
    REPETITION: _("The model repeated itself, so its answer was stopped."),
    CALL_AS_TEXT: _("The model wrote a tool call as text, so no tool was called."),
}


class TextChunk(dict[str, Any]):
    """A chunk with answer text and nothing else, so that readers needn't inspect it.

    Most chunks are like this. It has the content of any other chunk too.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        super().__init__(id=None, choices=[choice])
        self.text = text


KEEP_ALIVE: Chunk = {}  # the server sends nothing yet, but says that it is at work


def has_content(chunk: Chunk) -> bool:
    """Whether a chunk has a part of the reply, not only a role, a name or nothing."""
    if isinstance(chunk, TextChunk):
        return bool(chunk.text)
    deltas = (
        choice.get("delta") or choice.get("message") for choice in chunk.get("choices") or ()
    )
    return any(
        value for delta in deltas for name, value in (delta or {}).items() if name != "role"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One reply of the model.

    `kept` is what its provider expects back in the assistant's message.
    """

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    model: str = ""  # as the provider calls it in its reply
    is_refusal: bool = False
    kept: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_cut(self) -> bool:
        return self.finish_reason in CAVEATS

    @property
    def caveat(self) -> str:
        """A note for the user: the answer is a refusal, or incomplete."""
        return REFUSAL_NOTE if self.is_refusal else CAVEATS.get(self.finish_reason or "", "")

    def message(self, calls: Sequence[ToolCall] = ()) -> Message:
        """Return the turn as a history message, with the calls that are made."""
        extra = {"tool_calls": [call.wire() for call in calls]} if calls else {}
        return {"role": "assistant", "content": self.content or None, **extra, **self.kept}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """The model's decision.

    If `action` is None, `final_answer` is the answer. `calls` are all calls of the turn,
    `action` and `action_input` the first of them.
    """

    thought: str = ""
    action: str | None = None
    action_input: Any = None
    final_answer: str | None = None
    calls: tuple[ToolCall, ...] = ()
    turn: Turn = field(default_factory=Turn)


def assemble(chunks: Iterable[Chunk]) -> Turn:
    """Assemble the turn of a finished stream."""
    assembler = Assembler()
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.turn()


class Assembler:
    """Assembles one turn while its chunks arrive."""

    def __init__(self, *, keeps_echoes: bool = False) -> None:
        """Unless they are kept, repetitions of our own prompts are left out of the answer."""
        self._texts: dict[TextKind, list[str]] = {"thought": [], "answer": []}
        self._think_parser = ThinkTagParser()
        self._echo_filter = None if keeps_echoes else PromptEchoFilter()
        self._repetition = RepetitionDetector()
        self._reasoning = ReasoningCollector()
        self._calls = ToolCallAssembler()
        self._finish_reason: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self._model = ""
        self._reply_id = ""
        self._is_refusal = False
        self._has_begun = False
        self._size = 0

    @property
    def size(self) -> int:
        """Number of characters so far, in text and calls."""
        return self._size + self._calls.size

    @property
    def is_repeating(self) -> bool:
        """Whether the text has become the same piece again and again."""
        return self._repetition.is_repeating

    def feed(self, chunk: Chunk) -> list[VisibleText]:
        """Add a chunk and return its displayable text."""
        if isinstance(chunk, TextChunk):
            self._has_begun = True
            return self._store(self._think_parser.feed(chunk.text)) if chunk.text else []
        if not isinstance(chunk, MAPPING_TYPES):
            return []
        choice = _first_choice(chunk.get("choices"))
        usage = chunk.get("usage") or choice.get("usage")
        if usage and isinstance(usage, Mapping):
            reported = reported_usage(usage)
            # Limits count by the last whole report, and so does the trace.
            if has_counts(reported) or not has_counts(self._usage or {}):
                self._usage = reported
        if (model := chunk.get("model")) and isinstance(model, str):
            self._model = model
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self._finish_reason = reason
        delta = choice.get("delta")
        if delta is None and not self._has_begun:
            delta = choice.get("message")
        if not isinstance(delta, MAPPING_TYPES):
            return []
        self._has_begun = True
        if delta.get("tool_calls") or delta.get("function_call"):
            self._reply_id = str(chunk.get("id") or self._reply_id)
            self._calls.feed(delta)
        self._reasoning.feed(delta)
        visible: list[VisibleText] = []
        if thought := _reasoning_text(delta):
            visible.append(("thought", thought))
        content = delta.get("content")
        if content and isinstance(content, str):
            visible += self._think_parser.feed(content)
        elif content:
            visible += self._read_parts(content)
        if refusal := delta.get("refusal"):
            visible += self._read_refusal(text_or_empty(refusal))
        return self._store(visible)

    def rest(self) -> list[VisibleText]:
        """Return the text still held back when the stream ends."""
        held_pieces = self._store(self._think_parser.rest())
        echo_rest = self._echo_filter.rest() if self._echo_filter else ""
        if echo_rest:
            self._texts["answer"].append(echo_rest)
            held_pieces.append(("answer", echo_rest))
        return held_pieces

    def turn(self) -> Turn:
        """Return the whole turn."""
        self.rest()
        calls = self._calls.whole(self._reply_id)
        return Turn(
            content="".join(self._texts["answer"]),
            reasoning="".join(self._texts["thought"]),
            tool_calls=calls,
            finish_reason=REPETITION if self.is_repeating else self._finish_reason,
            usage=self._usage,
            model=self._model,
            is_refusal=self._is_refusal,
            kept=self._reasoning.message_fields(is_signed=any(call.kept for call in calls)),
        )

    def _read_parts(self, content: Any) -> Iterator[VisibleText]:
        """Yield the texts in a list of typed parts; thinking may be nested."""
        for block in as_list(content):
            if isinstance(block, str):
                yield from self._think_parser.feed(block)
            elif isinstance(block, MAPPING_TYPES):
                yield from (("thought", text) for text in _thinking_texts(block))
                if text := text_or_empty(block.get("text")):
                    yield from self._think_parser.feed(text)
                yield from self._read_refusal(text_or_empty(block.get("refusal")))

    def _read_refusal(self, text: str) -> list[VisibleText]:
        self._is_refusal = self._is_refusal or bool(text)
        return [("answer", text)] if text else []

    def _store(self, visible: list[VisibleText]) -> list[VisibleText]:
        """Keep the text without echoes of our prompts, and return what is left of it."""
        stored: list[VisibleText] = []
        for kind, piece in visible:
            self._size += len(piece)
            self._repetition.feed(piece)
            text = piece
            if kind == "answer" and self._echo_filter is not None:
                text = self._echo_filter.feed(piece)
            if text:
                self._texts[kind].append(text)
                stored.append((kind, text))
        return stored


_EMPTY_CHOICE: Mapping[str, Any] = {}


def _first_choice(choices: Any) -> Mapping[str, Any]:
    """Return choice 0, because we ask for one and mixing in another would garble both."""
    if not isinstance(choices, LIST_TYPES):
        return _EMPTY_CHOICE
    for position, choice in enumerate(choices):
        if isinstance(choice, MAPPING_TYPES):
            index = choice.get("index")
            if (position if index is None else index) == 0:
                return choice
    return _EMPTY_CHOICE


def _reasoning_text(delta: Mapping[str, Any]) -> str:
    """Return the reasoning in a delta once: some providers send it under two names."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if (text := delta.get(name)) and isinstance(text, str):
            return text
    if blocks := delta.get("thinking_blocks"):
        return "".join(text for block in mappings(blocks) for text in _thinking_texts(block))
    if details := delta.get("reasoning_details"):
        texts = (detail.get("text") or detail.get("summary") for detail in mappings(details))
        return "".join(map(text_or_empty, texts))
    return ""


def _thinking_texts(block: Mapping[str, Any]) -> list[str]:
    thinking = block.get("thinking")
    inner = [text_or_empty(piece.get("text")) for piece in mappings(thinking)]
    return [text for text in (text_or_empty(thinking), *inner) if text]
