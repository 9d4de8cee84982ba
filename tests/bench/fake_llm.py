"""A model provider on loopback whose tokens contain their send time.

The model's name defines the reply: `steps-3-tokens-200-rate-50-paragraph-40` calls the
calculator in three turns, then answers with 200 tokens, 50 a second, 40 per paragraph. Rate 0
is as fast as possible. A token is `@` and twelve hexadecimal digits: the monotonic clock in
microseconds when it was sent, always unique. All processes of the machine share the clock, so
the latency of a token can be measured wherever it is found.
"""

import asyncio
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cache

import orjson

from tests.bench.rounds import percentile

STAMP = re.compile(r"@([0-9a-f]{12})(?![0-9a-f])")
UNSTAMPED = b"@@"
BURST = 16
# A request for at most this many tokens is for a title.
SHORT_REPLY = 200
TITLE_TOKENS = 6
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
STREAM = HEAD % b"text/event-stream" + b"Transfer-Encoding: chunked\r\n\r\n"


def now() -> int:
    """Return the shared clock in microseconds."""
    return time.monotonic_ns() // 1000


def stamps(text: str) -> list[int]:
    return [int(digits, 16) for digits in STAMP.findall(text)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a model of this name does."""

    steps: int = 0
    tokens: int = 50
    rate: int = 0
    paragraph: int = 0

    @property
    def model(self) -> str:
        return (
            f"steps-{self.steps}-tokens-{self.tokens}"
            f"-rate-{self.rate}-paragraph-{self.paragraph}"
        )

    @classmethod
    def named(cls, model: str) -> "Plan":
        words = model.rpartition("/")[2].split("-")
        return cls(**{name: int(n) for name, n in zip(words[::2], words[1::2], strict=True)})


@cache
def events(model: str, turn: int) -> list[bytes]:
    """Return the reply's events, with tokens that have no time yet."""
    plan = Plan.named(model)
    is_call = turn < plan.steps
    deltas = _call(turn) if is_call else _answer(plan)
    finish = "tool_calls" if is_call else "stop"
    ended = [_event(model, {}, finish), _usage(model, plan), b"data: [DONE]\n\n"]
    return [*(_event(model, delta) for delta in deltas), b"".join(ended)]


def turn_of(messages: list[dict]) -> int:
    """Return how many replies followed the last question."""
    roles = [message["role"] for message in reversed(messages)]
    return roles[: roles.index("user")].count("assistant")


def call_deltas(turn: int) -> Iterator[dict]:
    """Yield a call of the calculator, its arguments in four pieces."""
    function = {"name": "calculator", "arguments": ""}
    yield _fragment(id=f"call_{turn}", type="function", function=function)
    arguments = f'{{"expression": "{turn}+1"}}'
    for at in range(0, len(arguments), 6):
        yield _fragment(function={"arguments": arguments[at : at + 6]})


def _call(turn: int) -> Iterator[dict]:
    yield {"role": "assistant", "content": None}
    yield from call_deltas(turn)


def _answer(plan: Plan) -> Iterator[dict]:
    yield {"role": "assistant", "content": ""}
    for number in range(1, plan.tokens + 1):
        is_last = plan.paragraph and number % plan.paragraph == 0
        yield {"content": UNSTAMPED.decode() + ("\n\n" if is_last else " ")}


def _fragment(**parts) -> dict:
    return {"tool_calls": [{"index": 0, **parts}]}


def _event(model: str, delta: dict, finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: %s\n\n" % orjson.dumps(_chunk(model) | {"choices": choices})


def _usage(model: str, plan: Plan) -> bytes:
    chunk = _chunk(model) | {"choices": [], "usage": _tokens(plan)}
    return b"data: %s\n\n" % orjson.dumps(chunk)


def _tokens(plan: Plan) -> dict[str, int]:
    usage = {"prompt_tokens": 20, "completion_tokens": plan.tokens}
    return usage | {"total_tokens": sum(usage.values())}


def _chunk(model: str) -> dict:
    kind = "chat.completion.chunk"
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": model}


def _model_for(request: dict) -> str:
    """Return the model asked for; a title gets a short reply, as from a real model."""
    limit = request.get("max_tokens") or request.get("max_completion_tokens") or 0
    if not 0 < limit <= SHORT_REPLY:
        return request["model"]
    plan = Plan.named(request["model"])
    return replace(plan, steps=0, tokens=min(plan.tokens, TITLE_TOKENS)).model


class FakeLLM:
    def __init__(self, models: Sequence[str] = ()) -> None:
        self._models = models
        self._late: list[float] = []
        self._last = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = (ConnectionError, asyncio.IncompleteReadError)
        with closing(writer), suppress(*gone):
            while True:
                path, body = await _request(reader)
                if path == b"/stats":
                    writer.write(self._stats())
                elif path == b"/v1/models":
                    writer.write(self._catalog())
                else:
                    await self._reply(writer, orjson.loads(body))

    async def _reply(self, writer: asyncio.StreamWriter, request: dict) -> None:
        model = _model_for(request)
        if not request.get("stream"):
            await self._reply_whole(writer, model)
            return
        parts = events(model, turn_of(request["messages"]))
        rate = Plan.named(model).rate
        writer.write(STREAM)
        send = self._in_time if rate else self._at_once
        await send(writer, parts, rate)
        writer.write(b"0\r\n\r\n")

    async def _reply_whole(self, writer: asyncio.StreamWriter, model: str) -> None:
        """Send an answer in one piece, when its last token would have been sent."""
        plan = Plan.named(model)
        if plan.rate:
            await asyncio.sleep(plan.tokens / plan.rate)
        text = b" ".join(self._stamp() for _ in range(plan.tokens)).decode()
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        about = _chunk(model) | {"object": "chat.completion", "usage": _tokens(plan)}
        writer.write(_json(about | {"choices": [choice]}))

    async def _in_time(self, writer: asyncio.StreamWriter, parts: list[bytes], rate: int):
        clock = asyncio.get_running_loop().time
        due = clock()
        for number, part in enumerate(parts):
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
                self._late.append(clock() - due)
            self._write(writer, [part])
            await writer.drain()
            due += 1 / rate if number else 0

    async def _at_once(self, writer: asyncio.StreamWriter, parts: list[bytes], rate: int):
        for at in range(0, len(parts), BURST):
            self._write(writer, parts[at : at + BURST])
            await writer.drain()
            await asyncio.sleep(0)

    def _write(self, writer: asyncio.StreamWriter, parts: list[bytes]) -> None:
        data = b"".join(part.replace(UNSTAMPED, self._stamp()) for part in parts)
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _stamp(self) -> bytes:
        self._last = max(self._last + 1, now())
        return b"@%012x" % self._last

    def _stats(self) -> bytes:
        """Return its own lag since the last call."""
        late, self._late = percentile(self._late, 0.99), []
        return _json({"late_p99_ms": late * 1000})

    def _catalog(self) -> bytes:
        """Return the model list, which some clients request first."""
        models = [{"id": name, "object": "model"} for name in self._models]
        return _json({"object": "list", "data": models})


def _json(value: dict) -> bytes:
    body = orjson.dumps(value)
    return HEAD % b"application/json" + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


async def _request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1])) if length else b""
    return head.split(b" ", 2)[1], body


async def serve(port: int, models: Sequence[str]) -> None:
    serve = FakeLLM(models).serve
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2:]))
