"""A model provider on loopback that behaves well or badly, as scripted.

Scripts are in OpenAI's format; a request in Anthropic's or Gemini's is answered in that one.
What only one provider has is in `tests/llm`.

A reply is a list of parts: a dict is sent as one event, bytes as they are, a float is a pause,
`HANG` stops sending and `CUT` resets the connection. So a fault is a modified good reply:

    async with WireServer([cut(say("one two three"), after=2), say("again")]) as server:
        ...  # server.url, server.requests, server.disconnects
"""

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Self

from tests.wire_formats import DONE, translate


class Fault(Enum):
    HANG = "hang"
    CUT = "cut"


HANG, CUT = Fault.HANG, Fault.CUT
GONE = (ConnectionError, asyncio.IncompleteReadError)
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
SSE = {"Content-Type": "text/event-stream"}
LINES = {"Content-Type": "application/x-ndjson"}
COMPLETIONS = (
    "/chat/completions",
    "/v1/messages",
    ":streamGenerateContent",
    ":generateContent",
    "/api/chat",
)

Part = Mapping[str, Any] | bytes | float | Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    parts: tuple[Part, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: SSE)


Script = Sequence[Reply] | Callable[[Request], Reply]


def say(
    text: str,
    *,
    chunks: int = 1,
    delay: float = 0.0,
    finish: str | None = "stop",
    reasoning: str = "",
) -> Reply:
    """Return the text in this many chunks, then finish, usage and end marker."""
    size = max(1, -(-len(text) // chunks))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    deltas: list[dict[str, Any]] = [{"content": piece} for piece in pieces]
    if reasoning:
        deltas.insert(0, {"reasoning_content": reasoning})
    return _reply(deltas, finish, delay)


def call(*calls: tuple[str, str], pieces: int = 3, finish: str = "tool_calls") -> Reply:
    """Return calls of (name, arguments), the arguments in pieces, as OpenAI sends them."""
    deltas: list[dict[str, Any]] = []
    for index, (name, arguments) in enumerate(calls):
        function: dict[str, Any] = {"name": name, "arguments": ""}
        start = {"index": index, "id": f"call_{index}", "type": "function"}
        deltas.append({"tool_calls": [{**start, "function": function}]})
        size = max(1, -(-len(arguments) // pieces))
        for at in range(0, len(arguments), size):
            function = {"arguments": arguments[at : at + size]}
            deltas.append({"tool_calls": [{"index": index, "function": function}]})
    return _reply(deltas, finish)


def fail(status: int, message: str, *, code: str = "", **headers: str) -> Reply:
    """Return an HTTP error; a header is written `Retry_After="7"`."""
    body = json.dumps({"error": {"message": message, "type": "error", "code": code or None}})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return _json(body.encode(), status, named)


def cut(reply: Reply, *, after: int) -> Reply:
    """Reset the connection after this many parts."""
    return replace(reply, parts=(*reply.parts[:after], CUT))


def hang(reply: Reply, *, after: int) -> Reply:
    """Send nothing more after this many parts, with the connection open."""
    return replace(reply, parts=(*reply.parts[:after], HANG))


def spoil(reply: Reply, garbage: bytes, *, after: int) -> Reply:
    """Insert these bytes after this many parts."""
    return replace(reply, parts=(*reply.parts[:after], garbage, *reply.parts[after:]))


def flood(chunks: int) -> Reply:
    return say("x" * chunks, chunks=chunks)


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": dict(delta), "finish_reason": finish}]
    return {**_envelope(), "choices": choices}


def models(*ids: str) -> dict[str, Any]:
    """Return the pages of an OpenAI-compatible server with these models."""
    data = [{"id": id, "object": "model", "owned_by": "test"} for id in ids]
    return {"/v1/models": {"object": "list", "data": data}}


def ollama(**capabilities: Sequence[str]) -> dict[str, Any]:
    """Return the pages of an Ollama server with these models and capabilities."""
    names = [{"name": name, "model": name} for name in capabilities]

    def show(request: Request) -> dict[str, Any]:
        return {"capabilities": list(capabilities[request.body["model"]])}

    return {"/api/tags": {"models": names}, "/api/show": show}


class WireServer:
    """Answers completions from a script, one reply per request, and other paths from pages."""

    def __init__(
        self,
        script: Script = (),
        *,
        pages: Mapping[str, Any] | None = None,
        port: int = 0,
    ) -> None:
        self.script = script
        self.pages = pages or {}
        self.port = port
        self.requests: list[Request] = []
        self.disconnects = 0
        self._changed = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def asked(self, count: int = 1) -> None:
        """Wait for this many requests."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def left(self, count: int = 1) -> None:
        """Wait until this many clients have left before the end of their reply."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.disconnects >= count)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(*GONE):
            request = await _read(reader)
            self.requests.append(request)
            await self._tell()
            reply = self._reply_to(request)
            spoken = replace(reply, parts=tuple(translate(request.path, reply.parts)))
            await self._answer(spoken, reader, writer)

    def _reply_to(self, request: Request) -> Reply:
        path = request.path
        path = path if path in self.pages else path.partition("?")[0]
        if path in self.pages:
            page = self.pages[path]
            page = page(request) if callable(page) else page
            return page if isinstance(page, Reply) else _page(page)
        if not request.path.partition("?")[0].endswith(COMPLETIONS):
            return fail(404, f"There is no {request.path} here.")
        if callable(self.script):
            return self.script(request)
        asked = sum(each.path == request.path for each in self.requests)
        if asked > len(self.script):
            return fail(500, "The script of this test is used up.")
        return self.script[asked - 1]

    async def _answer(
        self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        sending = asyncio.create_task(_send(reply, writer))
        leaving = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done() or isinstance(sending.exception(), ConnectionError):
                self.disconnects += 1
                await self._tell()
            else:
                sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@contextlib.contextmanager
def serve_in_thread(script: Script = (), **options: Any) -> Iterator[WireServer]:
    """Run the server in its own thread, for tests without an event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = WireServer(script, **options)
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(5)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


@contextlib.asynccontextmanager
async def silent_port() -> AsyncIterator[int]:
    """A port that accepts connections and never responds."""
    open_writers: list[asyncio.StreamWriter] = []

    def keep(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.append(writer)

    server = await asyncio.start_server(keep, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_writers:
            writer.close()
        await server.wait_closed()


def closed_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _envelope() -> dict[str, Any]:
    return {"id": "wire-1", "object": "chat.completion.chunk", "created": 1, "model": "wire"}


def _reply(deltas: list[dict[str, Any]], finish: str | None, delay: float = 0.0) -> Reply:
    parts: list[Part] = []
    for delta in deltas:
        parts += [chunk(delta), delay] if delay else [chunk(delta)]
    parts += [chunk({}, finish), {**_envelope(), "choices": [], "usage": USAGE}, DONE]
    return Reply(parts=tuple(parts))


def _page(body: Any) -> Reply:
    return _json(json.dumps(body).encode(), 200, {})


def _json(body: bytes, status: int, headers: Mapping[str, str]) -> Reply:
    framed = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    return Reply(parts=(body,), status=status, headers=framed | headers)


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    content: Any = body
    if not headers.get("content-type", "").startswith("multipart/"):
        with contextlib.suppress(ValueError):  # a sound is sent as it is
            content = json.loads(body)
    return Request(method=method, path=path, headers=headers, body=content or None)


async def _send(reply: Reply, writer: asyncio.StreamWriter) -> None:
    is_chunked = "Content-Length" not in reply.headers
    form = b"%b\n" if reply.headers == LINES else b"data: %b\n\n"
    framing = {"Transfer-Encoding": "chunked"} if is_chunked else {}
    headers = {**reply.headers, **framing, "Connection": "close"}
    lines = [f"HTTP/1.1 {reply.status} Said", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    for part in reply.parts:
        match part:
            case Fault.CUT:
                await _reset(writer)
                return
            case Fault.HANG:
                await writer.drain()
                await asyncio.Event().wait()
            case float():
                await asyncio.sleep(part)
            case _:
                data = part if isinstance(part, bytes) else form % json.dumps(part).encode()
                await _write(writer, data, is_chunked)
    writer.write(b"0\r\n\r\n" if is_chunked else b"")
    await writer.drain()


async def _write(writer: asyncio.StreamWriter, data: bytes, is_chunked: bool) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)
    await writer.drain()


async def _reset(writer: asyncio.StreamWriter) -> None:
    """Reset the connection: closing without linger isn't graceful."""
    await writer.drain()
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
