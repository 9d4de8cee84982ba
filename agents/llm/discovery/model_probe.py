"""Tests a model: reply, speed and capabilities."""

import base64
import random
import struct
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

from agents.engine.errors import AgentError
from agents.engine.loop import OutputSchema
from agents.engine.planner import LLM, Deadlines, batched, open_stream
from agents.engine.state import Message
from agents.engine.turn import Assembler, Turn

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
    options = {**(parameters or {}), "model": model, "max_tokens": MAX_TOKENS}
    for request in _probe_requests(llm, options):
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
        self.part = part
        self.fits = fits
        self.error: AgentError | None = None
        self._llm = llm
        self._request = request
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
                    has_tool_calls = any(
                        choice.get("delta", {}).get("tool_calls")
                        for choice in chunk.get("choices", ())
                    )
                    if self._first is None and (visible or has_tool_calls):
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
        usage = self._turn.usage or {}
        return ProbeResult(
            part=self.part,
            works=self.error is None and self.fits(self._turn),
            first=self._first,
            seconds=self._seconds,
            read=usage.get("prompt_tokens") or 0,
            written=usage.get("completion_tokens") or 0,
            pieces=self._pieces,
            cost=usage.get("cost"),
            error=self.error,
        )


def _probe_requests(llm: LLM, options: Mapping[str, Any]) -> Iterator[_ProbeRequest]:
    greeting = {**options, "messages": _user_message(GREETING)}
    yield _ProbeRequest("reply", llm, greeting, lambda turn: bool(turn.content.strip()))

    messages = _user_message("Use the tool multiply to work out 6 times 7.")
    product = {**options, "messages": messages, "tools": [MULTIPLY_TOOL]}
    yield _ProbeRequest("tools", llm, product, _has_multiply_call)

    colour = random.choice(list(COLOURS))
    url = f"data:image/png;base64,{base64.b64encode(solid_png(colour)).decode()}"
    names = ", ".join(COLOURS)
    question = f"Which colour is this picture? Answer with one of these words: {names}."
    content = [
        {"type": "text", "text": question},
        {"type": "image_url", "image_url": {"url": url}},
    ]

    def names_colour(turn: Turn) -> bool:
        return {name for name in COLOURS if name in turn.content.lower()} == {colour}

    picture = {**options, "messages": _user_message(content)}
    yield _ProbeRequest("vision", llm, picture, names_colour)

    messages = _user_message(
        "Which city is the capital of Japan, and how many people live there?"
    )
    response_format = {"response_format": CITY_SCHEMA.response_format()}
    city = {**options, **response_format, "messages": messages}
    yield _ProbeRequest("schema", llm, city, _matches_city)


def solid_png(colour: str) -> bytes:
    """Return a square of one color, as PNG."""
    line = b"\0" + bytes(COLOURS[colour]) * IMAGE_SIDE
    head = struct.pack(">IIBBBBB", IMAGE_SIDE, IMAGE_SIDE, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(line * IMAGE_SIDE)), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks:
        checksum = zlib.crc32(kind + data)
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
    return png


def _user_message(content: Any) -> list[Message]:
    return [{"role": "user", "content": content}]


def _has_multiply_call(turn: Turn) -> bool:
    for call in turn.tool_calls:
        with suppress(ValueError):  # arguments that aren't JSON
            factors = (call.input.get("a"), call.input.get("b"))
            if call.name == "multiply" and factors in [(6, 7), (7, 6)]:
                return True
    return False


def _matches_city(turn: Turn) -> bool:
    try:
        CITY_SCHEMA.decode(turn.content)
    except AgentError:
        return False
    return True
