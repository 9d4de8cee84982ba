"""Transports for FastMCP's client: a program, HTTP, or the older event stream.

FastMCP's own stdio transport isn't used: it passes on parts of our environment, lets a
program's children outlive it and reads lines of any length. Here the program's standard streams
are connected to its session instead.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import anyio
import httpx2
import mcp_types as wire
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastmcp.client.transports import ClientTransport, SSETransport
from fastmcp.client.transports.base import TransportOptions
from mcp import ClientSession
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from agents.engine.tool import uncertain_message

from . import process as mcp_process
from .config import ServerConfig

Incoming = SessionMessage | Exception
Callbacks = dict[str, Any]
HttpFactory = Callable[..., httpx2.AsyncClient]


class LenientSession(ClientSession):
    """Doesn't validate results against the server's schemas, because only text is used."""

    async def validate_tool_result(self, name: str, result: wire.CallToolResult) -> None:
        return None


TRANSPORT_OPTIONS = TransportOptions(session_class=LenientSession)


class StdioTransport(ClientTransport):
    """A server that is a local program, run by its supervisor."""

    def __init__(
        self, config: ServerConfig, ended: Callable[[], None], callbacks: Callbacks
    ) -> None:
        self.config = config
        self.ended = ended
        self.callbacks = callbacks
        self.process: mcp_process.McpProcess | None = None
        self.unread = 0
        self.calls: set[wire.RequestId] = set()

    @asynccontextmanager
    async def connect_session(self, **options: Any) -> AsyncIterator[ClientSession]:
        options.pop("transport_options", None)
        async with (
            mcp_process.run_server(self.config) as self.process,
            anyio.create_task_group() as tasks,
        ):
            # Not before it runs: giving up meanwhile would leave them open.
            sent, to_session = anyio.create_memory_object_stream[Incoming](0)
            from_session, received = anyio.create_memory_object_stream[SessionMessage](0)
            tasks.start_soon(self._read_messages, self.process, sent)
            tasks.start_soon(self._write, self.process, received)
            options |= self.callbacks
            async with LenientSession(to_session, from_session, **options) as session:
                yield session
            tasks.cancel_scope.cancel()

    async def _read_messages(
        self, process: mcp_process.McpProcess, sent: MemoryObjectSendStream[Incoming]
    ) -> None:
        async with sent:
            async for line in process.lines():
                for message in self._messages(line):
                    await sent.send(message)
        self.ended()

    async def _write(
        self,
        process: mcp_process.McpProcess,
        received: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        async with received:
            async for message in received:
                self._track_call(message.message)
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await process.write(text.encode() + b"\n")
                except OSError:
                    return self.ended()

    def _track_call(self, message: wire.JSONRPCMessage) -> None:
        """Track running calls, so that they can be failed."""
        match message:
            case wire.JSONRPCRequest(method="tools/call"):
                self.calls.add(message.id)
            case wire.JSONRPCNotification(method="notifications/cancelled"):
                self.calls.discard((message.params or {}).get("requestId", ""))

    def _messages(self, line: mcp_process.OutputLine) -> Iterator[SessionMessage]:
        """Yield the messages of a line.

        Other text is ignored, because many servers print some. An unreadable response fails the
        call it belongs to or, if it doesn't say which, all running calls, so that none waits
        forever.
        """
        if line.is_too_long and line.answers:
            most = f"{mcp_process.MAX_LINE_BYTES:,}"
            sentence = (
                f"The server's response is {line.size:,} bytes long; the limit is {most}."
            )
            yield from self._error_messages(sentence, line)
            return
        text = bytes(line.text)
        try:
            message = wire.jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValidationError:
            self.unread += bool(text.strip())
            if reason := _parse_problem(text):
                yield from self._error_messages(uncertain_message(reason), line)
            return
        if isinstance(message, wire.JSONRPCResponse | wire.JSONRPCError):
            self.calls.discard(message.id or "")
        yield SessionMessage(message)

    def _error_messages(
        self, sentence: str, line: mcp_process.OutputLine
    ) -> Iterator[SessionMessage]:
        ids = {json.loads(line.answers)} if line.answers else set(self.calls)
        self.calls -= ids
        for id in ids:
            error = wire.ErrorData(code=wire.INTERNAL_ERROR, message=sentence)
            yield SessionMessage(wire.JSONRPCError(jsonrpc="2.0", id=id, error=error))


def _parse_problem(text: bytes) -> str:
    """Return what is wrong with a message; empty if the line is just text."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return "The server's response isn't UTF-8 text."
    is_message = text.lstrip().startswith((b"{", b"[")) or b"jsonrpc" in text
    return "The server's response isn't a JSON-RPC message." if is_message else ""


class HttpTransport(ClientTransport):
    """A server behind a URL. FastMCP's own transport limits a message to a megabyte."""

    def __init__(
        self, config: ServerConfig, create_http: HttpFactory, callbacks: Callbacks
    ) -> None:
        self.config = config
        self.callbacks = callbacks
        self.refused_with = 0
        self.is_expired = False
        self._is_established = False
        self._create_http = create_http

    @asynccontextmanager
    async def connect_session(self, **options: Any) -> AsyncIterator[ClientSession]:
        options.pop("transport_options", None)
        http = self._create_http(headers=dict(self.config.headers))
        http.event_hooks["response"].append(self._note_status)
        async with (
            http,
            streamable_http_client(
                self.config.url,
                http_client=http,
                max_sse_event_size=mcp_process.MAX_LINE_BYTES,
            ) as (received, sent),
            LenientSession(received, sent, **options | self.callbacks) as session,
        ):
            yield session

    async def _note_status(self, response: httpx2.Response) -> None:
        """Note how the first requests are refused, and that the session has expired."""
        if response.request.method != "POST":
            return
        if MCP_SESSION_ID in response.request.headers:
            self.is_expired |= response.status_code == HTTPStatus.NOT_FOUND
        elif not self._is_established:
            self._is_established = response.is_success
            self.refused_with = response.status_code if response.is_error else 0


class LegacySseTransport(SSETransport):
    """A server that only speaks HTTP with SSE, the transport before streamable HTTP."""

    def __init__(
        self, config: ServerConfig, create_http: HttpFactory, callbacks: Callbacks
    ) -> None:
        super().__init__(
            config.url, headers=dict(config.headers), httpx_client_factory=create_http
        )
        self.callbacks = callbacks

    def connect_session(self, *_: Any, **options: Any) -> Any:
        options |= {"transport_options": TRANSPORT_OPTIONS, **self.callbacks}
        return super().connect_session(**options)
