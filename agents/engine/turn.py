"""Streamed chunks → one model turn.

Providers agree on the names of the fields and on little else. Which call a fragment belongs
to is decided in `_Calls.of`, by rules that hold for every shape we have met.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

Chunk = Mapping[str, Any]
Shown = tuple[Literal["thought", "answer"], str]

# The plain types first: asking an abstract one costs ten times as much, on every chunk.
_MAPPING = (dict, Mapping)
_LIST = (list, tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call the model asks for; `arguments` is JSON text, as it came."""

    id: str
    name: str
    arguments: str = "{}"

    @property
    def input(self) -> dict[str, Any]:
        """The arguments as data; raises ValueError where they are not a JSON object."""
        try:
            value = json.loads(self.arguments)
        except RecursionError:
            raise ValueError("they are nested too deeply") from None
        if not isinstance(value, dict):
            raise ValueError(f"arguments must be a JSON object, not {self.arguments!r}")
        return value

    @property
    def readable(self) -> dict[str, Any] | str:
        """The arguments as data, or as they came where they are none."""
        try:
            return self.input
        except ValueError:
            return self.arguments

    def wire(self) -> dict[str, Any]:
        """The call as history keeps it; arguments nobody can read would break what follows."""
        readable = self.readable
        arguments = json.dumps(
            readable if isinstance(readable, dict) else {}, ensure_ascii=False
        )
        function = {"name": self.name or "unknown", "arguments": arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the model said in one go."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None


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
        self._texts: dict[str, list[str]] = {"thought": [], "answer": []}
        self._calls = _Calls()
        self._finish_reason: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self._reply = ""

    def feed(self, chunk: Chunk) -> list[Shown]:
        """Take a chunk, and give the text in it that a person may see."""
        if not isinstance(chunk, _MAPPING):
            return []
        choice = _first(chunk.get("choices"))
        self._note(chunk, choice)
        delta = choice.get("delta")
        if delta is None:
            delta = choice.get("message")
        if not isinstance(delta, _MAPPING):
            return []
        if delta.get("tool_calls") or delta.get("function_call"):
            self._reply = str(chunk.get("id") or self._reply)
            self._calls.feed(delta)
        shown = _shown(delta)
        for kind, text in shown:
            self._texts[kind].append(text)
        return shown

    def turn(self) -> Turn:
        """All that was said."""
        return Turn(
            content="".join(self._texts["answer"]),
            reasoning="".join(self._texts["thought"]),
            tool_calls=self._calls.whole(self._reply),
            finish_reason=self._finish_reason,
            usage=self._usage,
        )

    def _note(self, chunk: Chunk, choice: Mapping[str, Any]) -> None:
        usage = chunk.get("usage") or choice.get("usage")
        if usage and isinstance(usage, Mapping):
            self._usage = usage
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self._finish_reason = reason


_NOTHING: Mapping[str, Any] = {}


def _first(choices: Any) -> Mapping[str, Any]:
    """Choice 0: we ask for one, and mixing in another would garble both."""
    if not isinstance(choices, _LIST):
        return _NOTHING
    for at, choice in enumerate(choices):
        if isinstance(choice, _MAPPING):
            index = choice.get("index")
            if (at if index is None else index) == 0:
                return choice
    return _NOTHING


def _shown(delta: Mapping[str, Any]) -> list[Shown]:
    shown: list[Shown] = []
    if thought := _reasoning(delta):
        shown.append(("thought", thought))
    content = delta.get("content")
    if content:
        if isinstance(content, str):
            shown.append(("answer", content))
        else:
            shown += [piece for piece in _parts(content) if piece[1]]
    refusal = delta.get("refusal")
    if refusal and isinstance(refusal, str):
        shown.append(("answer", refusal))
    return shown


def _reasoning(delta: Mapping[str, Any]) -> str:
    """The thinking in a delta, once: providers send it under two names at a time."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        text = delta.get(name)
        if text and isinstance(text, str):
            return text
    blocks = delta.get("thinking_blocks")
    return "".join(text for _, text in _parts(blocks)) if blocks else ""


def _parts(content: Any) -> Iterator[Shown]:
    """The texts in a list of typed parts; thinking may be a list of parts itself."""
    for part in _listed(content):
        if isinstance(part, str):
            yield "answer", part
        elif isinstance(part, Mapping):
            thinking = part.get("thinking")
            yield "thought", _text(thinking)
            for inner in _listed(thinking):
                yield "thought", _text(inner.get("text")) if isinstance(inner, Mapping) else ""
            yield "answer", _text(part.get("text"))


def _listed(value: Any) -> list[Any] | tuple[Any, ...]:
    if isinstance(value, Mapping):
        return [value]
    return value if isinstance(value, _LIST) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class _Calls:
    """The calls of a turn, in the order in which they began."""

    def __init__(self) -> None:
        self._all: list[_Call] = []
        self._ids: dict[str, _Call] = {}
        self._slots: dict[Hashable, _Call] = {}

    def feed(self, delta: Mapping[str, Any]) -> None:
        calls = delta.get("tool_calls") or ()
        for at, fragment in enumerate(_listed(calls)):
            if isinstance(fragment, Mapping):
                self._take(fragment, at)
        if not calls and isinstance(function := delta.get("function_call"), Mapping):
            self._take({"index": "function_call", "function": function}, 0)

    def whole(self, reply: str) -> tuple[ToolCall, ...]:
        said = [call for call in self._all if call.name or call.arguments]
        return tuple(call.whole(f"{reply} {at}") for at, call in enumerate(said))

    def _take(self, fragment: Mapping[str, Any], at: int) -> None:
        function = fragment.get("function")
        if not isinstance(function, Mapping):
            function = fragment
        index = next((part["index"] for part in (fragment, function) if _indexed(part)), None)
        id, name = _text(fragment.get("id")), _text(function.get("name"))
        self._of(id, name, index, at).take(name, function.get("arguments"))

    def _of(self, id: str, name: str, index: int | str | None, at: int) -> "_Call":
        """The call that a fragment belongs to."""
        if id in self._ids:
            return self._ids[id]
        slot = at if index is None else index
        call = self._slots.get(slot)
        if call is None and index is None and not (id or name) and self._all:
            return self._all[-1]
        if call is None or call.is_followed_by(id, name):
            call = self._slots[slot] = _Call()
            self._all.append(call)
        if id:
            call.id = id
            self._ids[id] = call
        return call


def _indexed(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("index"), int | str)


class _Call:
    """A call under construction."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self._brackets = _Brackets()
        self._followed = 0
        self._is_broken = False

    def is_followed_by(self, id: str, name: str) -> bool:
        """Whether a fragment that came to this call's slot begins another call."""
        if id:
            return bool(self.id or name)
        return bool(name) and self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether the arguments so far are whole JSON.

        Where the name comes with every fragment this is asked every time, so no fragment
        is looked at twice, and text that is closed but broken is not decoded again.
        """
        for fragment in self.arguments[self._followed :]:
            self._brackets.follow(fragment)
        self._followed = len(self.arguments)
        if self._is_broken or not self._brackets.are_closed:
            return False
        self._is_broken = not _is_json("".join(self.arguments))
        return not self._is_broken

    def take(self, name: str, arguments: Any) -> None:
        self._take_name(name)
        if isinstance(arguments, str):
            if arguments:
                self.arguments.append(arguments)
        elif arguments is not None:
            self.arguments.append(json.dumps(arguments, ensure_ascii=False))

    def whole(self, seed: str) -> ToolCall:
        arguments = "".join(self.arguments).strip() or "{}"
        id = self.id or _made_up(f"{seed} {self.name} {arguments}")
        return ToolCall(id=id, name=self.name.strip(), arguments=arguments)

    def _take_name(self, name: str) -> None:
        """A name comes once, again with every fragment, growing, or in fragments itself."""
        if name.startswith(self.name):
            self.name = name
        elif not self.arguments:
            self.name += name


class _Brackets:
    """Follows JSON text as it grows, to know when decoding it may be worth while."""

    def __init__(self) -> None:
        self.are_closed = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def follow(self, text: str) -> None:
        for char in text:
            if self._escaped:
                self._escaped = False
            elif self._in_string:
                self._escaped = char == "\\"
                self._in_string = char != '"'
            elif char == '"':
                self._in_string = True
            elif char in "{[":
                self._depth += 1
                self.are_closed = False
            elif char in "}]":
                self._depth -= 1
                self.are_closed = self._depth == 0


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _made_up(seed: str) -> str:
    """An id for a call that came without: nine letters or digits suit every provider."""
    return blake2b(seed.encode(errors="replace")).hexdigest()[:9]
