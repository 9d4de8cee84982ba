"""Tests a model: reply, speed and capabilities."""

import base64
import random
import struct
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

from agents.engine.errors import AgentError
from agents.engine.loop import OutputSchema
from agents.engine.planner import LLM, Deadlines, batched, open_stream
from agents.engine.state import Message
from agents.engine.turn import Assembler, ToolCall, Turn

ProbePart = Literal["reply", "tools", "vision", "schema"]
DEADLINES = Deadlines(first=60, between=30, whole=120)
# Enough for models that reason first.
MAX_TOKENS = 1024
IMAGE_SIDE = 64
COLOURS = {
    "red": (220, 20, 20),
    "green": (20, 160, 20),
    "blue": (20, 20, 220),
    "yellow": (250, 220, 0),
}
GREETING = "Greet the administrator who has just set you up, in one short sentence."
MULTIPLY_TOOL = {
    "type": "function",
    "function": {
        "name": "multiply",
        "description": "Multiplies two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
}
CITY_SCHEMA = OutputSchema(
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "inhabitants": {"type": "integer"}},
        "required": ["city", "inhabitants"],
        "additionalProperties": False,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result of one part; `error` is why it couldn't be tested."""

    part: ProbePart
    works: bool
    first: float | None = None  # seconds until the first token
    seconds: float = 0
    read: int = 0  # tokens
    written: int = 0
    pieces: int = 0  # in which the text arrived: more than one if it is streamed
    cost: float | None = None
    error: AgentError | None = None


async def probe(
    llm: LLM, model: str, parameters: Mapping[str, Any] | None = None
) -> AsyncGenerator[str | ProbeResult, None]:
    """Yield the first reply's text, then the result of each part.

    If the model doesn't reply at all, the test ends.
    """
    options = {**(parameters or {}), "max_tokens": MAX_TOKENS}
    for build_request in (_reply_probe, _tools_probe, _vision_probe, _schema_probe):
        request = build_request(llm, model, options)
        async with aclosing(request.texts()) as texts:
            async for text in texts:
                if request.part == "reply":
                    yield text
        yield request.result()
        if request.part == "reply" and request.error:
            return


class _ProbeRequest:
    """One request: its text as it comes, and its result."""

    def __init__(
        self, part: ProbePart, llm: LLM, request: dict[str, Any], fits: Callable[[Turn], bool]
    ) -> None:
        self.part, self.fits = part, fits
        self.error: AgentError | None = None
        self._llm, self._request = llm, request
        self._turn = Turn()
        self._first: float | None = None
        self._seconds = 0.0
        self._pieces = 0

    async def texts(self) -> AsyncGenerator[str, None]:
        began = monotonic()
        assembler = Assembler()
        try:
            chunks = open_stream(self._llm.stream, **self._request)
            async with aclosing(batched(chunks, DEADLINES)) as batches:
                async for chunk in (chunk async for batch in batches for chunk in batch):
                    visible = assembler.feed(chunk)
                    self._pieces += bool(visible)
                    if self._first is None and (visible or _has_tool_calls(chunk)):
                        self._first = monotonic() - began
                    if text := "".join(text for kind, text in visible if kind == "answer"):
                        yield text
            if text := "".join(text for kind, text in assembler.rest() if kind == "answer"):
                yield text
            self._turn = assembler.turn()
        except AgentError as error:
            self.error = error
        self._seconds = monotonic() - began

    def result(self) -> ProbeResult:
        used = self._turn.usage or {}
        return ProbeResult(
            part=self.part,
            works=self.error is None and self.fits(self._turn),
            first=self._first,
            seconds=self._seconds,
            read=used.get("prompt_tokens") or 0,
            written=used.get("completion_tokens") or 0,
            pieces=self._pieces,
            cost=used.get("cost"),
            error=self.error,
        )


def _reply_probe(llm: LLM, model: str, parameters: dict[str, Any]) -> _ProbeRequest:
    request = {**parameters, "model": model, "messages": _user_message(GREETING)}
    return _ProbeRequest("reply", llm, request, lambda turn: bool(turn.content.strip()))


def _tools_probe(llm: LLM, model: str, parameters: dict[str, Any]) -> _ProbeRequest:
    messages = _user_message("Use the tool multiply to work out 6 times 7.")
    request = {**parameters, "model": model, "messages": messages, "tools": [MULTIPLY_TOOL]}
    return _ProbeRequest("tools", llm, request, _has_multiply_call)


def _vision_probe(llm: LLM, model: str, parameters: dict[str, Any]) -> _ProbeRequest:
    colour = random.choice(list(COLOURS))
    url = f"data:image/png;base64,{base64.b64encode(solid_png(colour)).decode()}"
    names = ", ".join(COLOURS)
    question = f"Which colour is this picture? Answer with one of these words: {names}."
    content = [
        {"type": "text", "text": question},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    request = {**parameters, "model": model, "messages": _user_message(content)}
    return _ProbeRequest(
        "vision", llm, request, lambda turn: _mentioned_colours(turn.content) == {colour}
    )


def _schema_probe(llm: LLM, model: str, parameters: dict[str, Any]) -> _ProbeRequest:
    messages = _user_message(
        "Which city is the capital of Japan, and how many people live there?"
    )
    response_format = {"response_format": CITY_SCHEMA.response_format()}
    request = {**parameters, **response_format, "model": model, "messages": messages}
    return _ProbeRequest("schema", llm, request, _matches_city)


def solid_png(colour: str) -> bytes:
    """Return a square of one color, as PNG."""
    line = b"\0" + bytes(COLOURS[colour]) * IMAGE_SIDE
    head = struct.pack(">IIBBBBB", IMAGE_SIDE, IMAGE_SIDE, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(line * IMAGE_SIDE)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(kind, data) for kind, data in parts)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def _user_message(content: Any) -> list[Message]:
    return [{"role": "user", "content": content}]


def _has_tool_calls(chunk: Mapping[str, Any]) -> bool:
    return any(choice.get("delta", {}).get("tool_calls") for choice in chunk.get("choices", ()))


def _has_multiply_call(turn: Turn) -> bool:
    return any(call.name == "multiply" and _is_product(call) for call in turn.tool_calls)


def _is_product(call: ToolCall) -> bool:
    try:
        arguments = call.input
    except ValueError:
        return False
    return (arguments.get("a"), arguments.get("b")) in [(6, 7), (7, 6)]


def _mentioned_colours(text: str) -> set[str]:
    return {colour for colour in COLOURS if colour in text.lower()}


def _matches_city(turn: Turn) -> bool:
    try:
        CITY_SCHEMA.decode(turn.content)
    except AgentError:
        return False
    return True
