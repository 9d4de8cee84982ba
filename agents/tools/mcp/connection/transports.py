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

from agents.engine.sentences import Sentence as _
from agents.engine.tool import uncertain_message
from agents.tools.sandbox.supervised import SupervisedProcess

from ..configuration.config import ServerConfig
from ..process import process as mcp_process

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
        self.process: SupervisedProcess | None = None
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
            incoming, to_session = anyio.create_memory_object_stream[Incoming](0)
            from_session, received = anyio.create_memory_object_stream[SessionMessage](0)
            tasks.start_soon(self._read_messages, self.process, incoming)
            tasks.start_soon(self._write, self.process, received)
            options |= self.callbacks
            async with LenientSession(to_session, from_session, **options) as session:
                yield session
            tasks.cancel_scope.cancel()

    async def _read_messages(
        self, process: SupervisedProcess, incoming: MemoryObjectSendStream[Incoming]
    ) -> None:
        async with incoming:
            async for line in mcp_process.output_lines(process):
                for message in self._messages(line):
                    await incoming.send(message)
        self.ended()

    async def _write(
        self,
        process: SupervisedProcess,
        received: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        async with received:
            async for message in received:
                # Running calls are tracked, so that they can be failed.
                match message.message:
                    case wire.JSONRPCRequest(method="tools/call", id=id):
                        self.calls.add(id)
                    case wire.JSONRPCNotification(method="notifications/cancelled") as notice:
                        self.calls.discard((notice.params or {}).get("requestId", ""))
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await process.write(text.encode() + b"\n")
                except OSError:
                    return self.ended()

    def _messages(self, line: mcp_process.OutputLine) -> Iterator[SessionMessage]:
        """Yield the messages of a line.

        Other text is ignored, because many servers print some. An unreadable response fails the
        call it belongs to or, if it doesn't say which, all running calls, so that none waits
        forever.
        """
        if line.is_too_long and line.answers:
            sentence = _(
                "The server's response is %(size)s bytes long; the limit is %(limit)s.",
                size=f"{line.size:,}",
                limit=f"{mcp_process.MAX_LINE_BYTES:,}",
            )
            yield from self._error_messages(sentence, line)
            return
        text = bytes(line.text)
        try:
            message = wire.jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValidationError:
            self.unread += bool(text.strip())
            # A broken message, not just text.
            is_message = text.lstrip().startswith((b"{", b"[")) or b"jsonrpc" in text
            reason = _("The server's response isn't a JSON-RPC message.") if is_message else ""
            try:
                text.decode()
            except UnicodeDecodeError:
                reason = _("The server's response isn't UTF-8 text.")
            if reason:
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


class HttpTransport(ClientTransport):
    """A server behind a URL. FastMCP's own transport limits a message to a megabyte."""

    def __init__(
        self,
        config: ServerConfig,
        create_http: HttpFactory,
        callbacks: Callbacks,
        auth: httpx2.Auth | None = None,
    ) -> None:
        self.config = config
        self.callbacks = callbacks
        self.auth = auth
        self.refused_with = 0
        self.is_expired = False
        self._is_established = False
        self._create_http = create_http

    @asynccontextmanager
    async def connect_session(self, **options: Any) -> AsyncIterator[ClientSession]:
        options.pop("transport_options", None)
        http = self._create_http(headers=dict(self.config.headers), auth=self.auth)
        http.event_hooks["response"].append(self._note_status)
        async with (
            http,
            streamable_http_client(
                self.config.url,
                http_client=http,
                max_sse_event_size=mcp_process.MAX_LINE_BYTES,
            ) as (to_session, from_session),
            LenientSession(to_session, from_session, **options | self.callbacks) as session,
        ):
            yield session

    async def _note_status(self, response: httpx2.Response) -> None:
        """Note how the first requests are refused, and that the session has expired."""
        request = response.request
        # Signing in sends requests to other addresses.
        if request.method != "POST" or request.url != httpx2.URL(self.config.url):
            return
        if MCP_SESSION_ID in request.headers:
            self.is_expired |= response.status_code == HTTPStatus.NOT_FOUND
        elif not self._is_established:
            self._is_established = response.is_success
            self.refused_with = response.status_code if response.is_error else 0


class LegacySseTransport(SSETransport):
    """A server that only speaks HTTP with SSE, the transport before streamable HTTP."""

    def __init__(
        self,
        config: ServerConfig,
        create_http: HttpFactory,
        callbacks: Callbacks,
        auth: httpx2.Auth | None = None,
    ) -> None:
        super().__init__(
            config.url,
            headers=dict(config.headers),
            auth=auth,
            httpx_client_factory=create_http,
        )
        self.callbacks = callbacks

    def connect_session(self, *_: Any, **options: Any) -> Any:
        options |= {"transport_options": TRANSPORT_OPTIONS, **self.callbacks}
        return super().connect_session(**options)
