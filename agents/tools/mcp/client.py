"""FastMCP's client.

Only this file imports FastMCP, which takes seconds. Its own stdio transport isn't used: it
passes on parts of our environment, lets a program's children outlive it and reads lines of any
length. Here the program's standard streams are connected to its session instead.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx2
import mcp_types as wire
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastmcp import Client
from fastmcp.client.transports import ClientTransport, SSETransport, StreamableHttpTransport
from fastmcp.client.transports.base import TransportOptions
from mcp import ClientSession, MCPError
from mcp.client.subscriptions import listen
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agents.engine.errors import ToolError
from agents.engine.tool import ToolResult, uncertain_message
from agents.tools import egress

from . import process as mcp_process
from . import results
from .config import ServerConfig
from .definition import MAX_DESCRIPTION_CHARS, ToolDefinition

MAX_TOOLS = 500
MAX_PAGES = 50
MAX_LIST_CHARS = 2_000_000
MAX_DEFINITION_CHARS = 100_000
EXIT_WAIT_SECONDS = 0.3
FAILURES = (
    *(MCPError, ToolError, ValidationError, OSError, RuntimeError, EOFError),
    *(httpx2.HTTPError, httpx2.StreamError, anyio.ClosedResourceError),
    *(anyio.BrokenResourceError, ExceptionGroup),
)
Incoming = SessionMessage | Exception

logger = logging.getLogger(__name__)


class LenientSession(ClientSession):
    """Doesn't validate results against the server's schemas, because only text is used."""

    async def validate_tool_result(self, name: str, result: wire.CallToolResult) -> None:
        return None


TRANSPORT_OPTIONS = TransportOptions(session_class=LenientSession)


class StdioTransport(ClientTransport):
    """A server that is a local program, run by its supervisor."""

    def __init__(self, config: ServerConfig, ended: Callable[[], None]) -> None:
        self.config = config
        self.ended = ended
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


class HttpTransport(StreamableHttpTransport):
    def connect_session(self, *_: Any, **options: Any) -> Any:
        return super().connect_session(**{**options, "transport_options": TRANSPORT_OPTIONS})


class LegacySseTransport(SSETransport):
    def connect_session(self, *_: Any, **options: Any) -> Any:
        return super().connect_session(**{**options, "transport_options": TRANSPORT_OPTIONS})


def create_client(
    config: ServerConfig, policy: egress.Egress, look: Callable[[], None]
) -> Client[ClientTransport]:
    """Return an unconnected client; it calls `look` when its tools may have changed."""

    async def hear(message: wire.ServerNotification | Exception) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            look()

    return Client(
        _create_transport(config, policy, look),
        name=config.name,
        message_handler=hear,
        log_handler=_ignore_log,
        client_info=wire.Implementation(name="ashiato", version="1"),
        init_timeout=config.connect_timeout,
    )


def _create_transport(
    config: ServerConfig, policy: egress.Egress, ended: Callable[[], None]
) -> ClientTransport:
    if config.transport == "stdio":
        return StdioTransport(config, ended)
    # Calls have their own timeout, and a notification stream may be silent for any time.
    patience = httpx2.Timeout(config.connect_timeout, read=None)
    make = LegacySseTransport if config.transport == "sse" else HttpTransport
    limited = replace(policy, most_bytes=mcp_process.MAX_LINE_BYTES)

    def factory(*_: Any, **options: Any) -> httpx2.AsyncClient:
        http = egress.create_client(limited, **{**options, "timeout": patience})
        http.event_hooks = {"request": [], "response": [_isolate_stream]}
        return http

    return make(config.url, headers=dict(config.headers), httpx_client_factory=factory)


class _IsolatedStream(httpx2.AsyncByteStream):
    """Lets an oversized response fail alone; otherwise it would end all running calls."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                yield piece
        except ToolError as error:
            raise httpx2.StreamError(str(error)) from error

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _isolate_stream(response: httpx2.Response) -> None:
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _IsolatedStream(response.stream)


async def _ignore_log(message: object) -> None:
    """Ignore the server's log messages."""


@asynccontextmanager
async def watch_tools(client: Client[Any], look: Callable[[], None]) -> AsyncIterator[None]:
    """Call `look` whenever a server with the newer protocol announces a change."""
    task = None
    if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
        task = asyncio.create_task(_watch_loop(client, look))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


async def _watch_loop(client: Client[Any], look: Callable[[], None]) -> None:
    try:
        async with listen(client.session, tools_list_changed=True) as changes:
            look()  # something may have changed before we subscribed
            async for _ in changes:
                look()
    except FAILURES as error:
        # It can't announce changes; it is polled anyway.
        logger.info("no notices of changed tools: %s", type(error).__name__)


async def call_tool(
    client: Client[Any], tool: str, arguments: Mapping[str, Any]
) -> wire.CallToolResult:
    """Call a tool.

    A connection that is closed meanwhile must not look like our own cancellation.
    """
    try:
        return await client.call_tool_mcp(tool, dict(arguments))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError("The connection was closed.") from None


async def to_tool_result(
    client: Client[Any], answer: wire.CallToolResult, credentials: Iterable[str] = ()
) -> ToolResult:
    """Return a response's text and attachments; a few linked resources are read."""

    async def read(uri: str) -> list[results.Contents] | None:
        try:
            return (await client.read_resource_mcp(uri)).contents
        except FAILURES as error:
            logger.info("%s: can't read a linked resource: %s", client.name, error)
            return None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return None  # the connection was closed meanwhile

    capabilities = client.server_capabilities
    has_resources = capabilities is not None and capabilities.resources is not None
    return await results.to_tool_result(answer, credentials, read if has_resources else None)


async def list_tools(client: Client[Any]) -> tuple[ToolDefinition, ...]:
    """Return all tools of a server by name; the first wins if a name is repeated."""
    listed = (await _list_pages(client))[:MAX_TOOLS]
    found = {tool.name: _to_definition(tool) for tool in reversed(listed)}
    long = [name for name in found if _definition_chars(found[name]) > MAX_DEFINITION_CHARS]
    for name in long:
        logger.warning("%s: the tool %.64r says too much: left out.", client.name, name)
    return tuple(found[name] for name in sorted(found.keys() - long))


async def _list_pages(client: Client[Any]) -> list[wire.Tool]:
    """List all pages; raise ToolError if there is no end to them."""
    tools: list[wire.Tool] = []
    cursors: list[str | None] = [None]
    size = 0
    while len(cursors) <= MAX_PAGES:
        page = await client.list_tools_mcp(cursor=cursors[-1])
        tools += page.tools
        size += sum(len(tool.model_dump_json()) for tool in page.tools)
        if size > MAX_LIST_CHARS:
            raise ToolError(
                f"The server's tool list is longer than {MAX_LIST_CHARS:,} characters."
            )
        if not page.next_cursor or page.next_cursor in cursors or len(tools) >= MAX_TOOLS:
            return tools
        cursors.append(page.next_cursor)
    raise ToolError(f"The server's tool list has more than {MAX_PAGES} pages.")


def _definition_chars(definition: ToolDefinition) -> int:
    return len(json.dumps(definition.as_dict()))


def _to_definition(tool: wire.Tool) -> ToolDefinition:
    hints = tool.annotations
    return ToolDefinition(
        name=tool.name,
        description=(tool.description or tool.title or "")[:MAX_DESCRIPTION_CHARS],
        parameters={"type": "object", **tool.input_schema},
        annotations=hints.model_dump(by_alias=True, exclude_none=True) if hints else {},
    )


async def explain(error: Exception, client: Client[Any]) -> str:
    """Return what went wrong with a server, as a sentence."""
    transport = client.transport
    if isinstance(error, ToolError):
        return str(error)  # we disconnected, and that is why
    if isinstance(transport, StdioTransport) and (process := transport.process):
        # Its exit is only known a moment after its streams are closed.
        if not isinstance(error, TimeoutError) and await process.wait(EXIT_WAIT_SECONDS):
            ended = f"The program exited with status {process.status}."
            return _quote_output(ended, process.stderr_tail)
        if transport.unread:
            reason, lines = _error_reason(error), transport.unread
            sentence = f"{reason} It wrote {lines} lines that aren't MCP messages."
            return _quote_output(sentence, process.stderr_tail)
    return _error_reason(error)


def is_connection_error(error: Exception) -> bool:
    """Whether the connection failed, rather than the server returning an error."""
    return not isinstance(error, MCPError) or error.code in {
        wire.CONNECTION_CLOSED,
        wire.REQUEST_TIMEOUT,
    }


def _quote_output(sentence: str, words: str) -> str:
    return f"{sentence} Last output: {words[-600:]}" if words else sentence


def _error_reason(error: BaseException) -> str:
    if isinstance(error, ExceptionGroup):
        return _error_reason(error.exceptions[0])
    match error:
        case TimeoutError():
            return "The server didn't respond in time."
        case httpx2.HTTPStatusError():
            return f"The server returned HTTP {error.response.status_code}."
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return "Couldn't connect to the server."
        case httpx2.HTTPError():
            return f"The connection was lost ({type(error).__name__})."
        case ValidationError():
            return "The server's response doesn't follow the MCP specification."
        case RuntimeError() if error.__cause__ is not None:
            return _error_reason(error.__cause__)
    return str(error).strip() or type(error).__name__
