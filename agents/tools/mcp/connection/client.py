"""FastMCP's client. Only this module and `transports` import FastMCP, which takes seconds."""

import asyncio
import binascii
import json
import logging
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx2
import mcp_types as wire
from fastmcp import Client
from fastmcp.client.progress import ProgressHandler
from fastmcp.client.transports import ClientTransport
from mcp import MCPError
from mcp.client.subscriptions import listen
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agents.engine.call_context import Question
from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.engine.tool import ToolResult
from agents.tools import egress

from ..configuration.config import ServerConfig
from ..definition import MAX_DESCRIPTION_CHARS, Resource, ToolDefinition
from ..process import process as mcp_process
from ..sign_in import SignInRequired
from . import oauth, results, server_requests
from .transports import Callbacks, HttpTransport, LegacySseTransport, StdioTransport

MAX_TOOLS = 500
MAX_PAGES = 50
MAX_LIST_CHARS = 2_000_000
MAX_DEFINITION_CHARS = 100_000
EXIT_WAIT_SECONDS = 0.3
FAILURES = (
    *(MCPError, ToolError, ValidationError, OSError, RuntimeError, EOFError),
    *(httpx2.HTTPError, httpx2.StreamError, anyio.ClosedResourceError),
    *(anyio.BrokenResourceError, ExceptionGroup, *oauth.FLOW_ERRORS),
)
# Of servers without streamable HTTP, according to the specification.
LEGACY_STATUSES = {400, 404, 405}
NO_HANDSHAKE_CODES = {wire.UNSUPPORTED_PROTOCOL_VERSION, wire.METHOD_NOT_FOUND}
# More than one event may have, so that it is the event's limit that is reported.
MAX_RESPONSE_BYTES = mcp_process.MAX_LINE_BYTES + 2**20
logger = logging.getLogger(__name__)


def other_variants(client: Client[Any], error: Exception) -> list[str]:
    """Return the protocols to try after the first one has failed in this way.

    A server may know only the newest revision, or only HTTP with SSE: the specification has
    clients try that after certain statuses.
    """
    transport = client.transport
    is_modern = isinstance(error, MCPError) and error.code in NO_HANDSHAKE_CODES
    is_old = isinstance(transport, HttpTransport) and transport.refused_with in LEGACY_STATUSES
    return [*(["newest"] if is_modern else []), *(["sse"] if is_old else [])]


def create_client(
    config: ServerConfig,
    policy: egress.Egress,
    on_change: Callable[[], None],
    answerer: server_requests.Answerer,
    variant: str,
) -> Client[ClientTransport]:
    """Return an unconnected client; it calls `on_change` when its tools may have changed.

    What the server asks of the user and the model goes to `answerer`. A server may list some
    tools only to clients that can be asked.
    """
    if variant == "sse":
        config = replace(config, transport="sse")

    async def handle_notification(message: wire.ServerNotification | Exception) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            on_change()

    return Client(
        _create_transport(config, policy, on_change, server_requests.callbacks(answerer)),
        name=config.name,
        message_handler=handle_notification,
        log_handler=_ignore_log,
        client_info=wire.Implementation(name="ashiato", version="1"),
        init_timeout=config.connect_timeout,
        mode="auto" if variant == "newest" else "legacy",
    )


def _create_transport(
    config: ServerConfig,
    policy: egress.Egress,
    on_end: Callable[[], None],
    callbacks: Callbacks,
) -> ClientTransport:
    if config.transport == "stdio":
        return StdioTransport(config, on_end, callbacks)
    is_sse = config.transport == "sse"
    # Calls have their own timeout, and a notification stream may be silent for any time.
    timeout = httpx2.Timeout(config.connect_timeout, read=None)
    # All responses of an old server are one stream; each event in it has a limit anyway.
    limited_policy = replace(policy, most_bytes=sys.maxsize if is_sse else MAX_RESPONSE_BYTES)

    def create_http(*_: Any, **options: Any) -> httpx2.AsyncClient:
        client = egress.create_client(limited_policy, **{**options, "timeout": timeout})
        client.event_hooks = {"request": [], "response": [_isolate_stream]}
        return client

    auth = oauth.SignInProvider(config.url, config.sign_in) if config.sign_in else None
    transport_class = LegacySseTransport if is_sse else HttpTransport
    return transport_class(config, create_http, callbacks, auth)


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


def announces_changes(client: Client[Any]) -> bool:
    """Whether the server says that its tools can change while it is connected."""
    capabilities = client.server_capabilities
    tools = capabilities.tools if capabilities else None
    return bool(tools and tools.list_changed)


@asynccontextmanager
async def watch_tools(
    client: Client[Any], on_change: Callable[[], None]
) -> AsyncIterator[None]:
    """Call `on_change` whenever a server with the newer protocol announces a change."""
    task = None
    if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
        task = asyncio.create_task(_watch_loop(client, on_change))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


async def _watch_loop(client: Client[Any], on_change: Callable[[], None]) -> None:
    try:
        async with listen(client.session, tools_list_changed=True) as changes:
            on_change()  # something may have changed before we subscribed
            async for _ in changes:
                on_change()
    except FAILURES as error:
        # It can't announce changes; it is polled anyway.
        logger.info("no notices of changed tools: %s", type(error).__name__)


async def call_tool(
    client: Client[Any],
    tool: str,
    arguments: Mapping[str, Any],
    on_progress: ProgressHandler | None = None,
) -> wire.CallToolResult:
    """Call a tool.

    A connection that is closed meanwhile must not look like our own cancellation.
    """
    try:
        return await client.call_tool_mcp(tool, dict(arguments), on_progress)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError(_("The connection was closed.")) from None


async def to_tool_result(
    client: Client[Any], result: wire.CallToolResult, credentials: Iterable[str] = ()
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
    return await results.to_tool_result(result, credentials, read if has_resources else None)


def url_questions(name: str, error: Exception) -> list[Question]:
    """Return the pages that the user must open before the call can be made."""
    if not isinstance(error, MCPError):
        return []
    return server_requests.url_questions(name, error.error)


async def list_tools(client: Client[Any]) -> tuple[ToolDefinition, ...]:
    """Return all tools of a server by name; the first wins if a name is repeated."""
    tools: list[wire.Tool] = []
    cursors: list[str | None] = [None]
    size = 0
    while len(cursors) <= MAX_PAGES:
        page = await client.list_tools_mcp(cursor=cursors[-1])
        tools += page.tools
        size += sum(len(tool.model_dump_json()) for tool in page.tools)
        if size > MAX_LIST_CHARS:
            raise ToolError(
                _(
                    "The server's tool list is longer than %(limit)s characters.",
                    limit=f"{MAX_LIST_CHARS:,}",
                )
            )
        if not page.next_cursor or page.next_cursor in cursors or len(tools) >= MAX_TOOLS:
            break
        cursors.append(page.next_cursor)
    else:
        raise ToolError(
            _("The server's tool list has more than %(limit)s pages.", limit=MAX_PAGES)
        )
    definitions: dict[str, ToolDefinition] = {}
    for tool in reversed(tools[:MAX_TOOLS]):
        hints = tool.annotations
        definitions[tool.name] = ToolDefinition(
            name=tool.name,
            description=(tool.description or tool.title or "")[:MAX_DESCRIPTION_CHARS],
            parameters={"type": "object", **tool.input_schema},
            annotations=hints.model_dump(by_alias=True, exclude_none=True) if hints else {},
        )
    too_long = [
        name
        for name, definition in definitions.items()
        if len(json.dumps(definition.as_dict())) > MAX_DEFINITION_CHARS
    ]
    for name in too_long:
        logger.warning("%s: the tool %.64r says too much: left out.", client.name, name)
    return tuple(definitions[name] for name in sorted(definitions.keys() - too_long))


async def list_resources(
    client: Client[Any], cursor: str | None
) -> tuple[list[Resource], str | None]:
    """Return one page of a server's resources, and the cursor of the next one."""
    page = await client.list_resources_mcp(cursor=cursor, cache_mode="bypass")
    resources = [
        Resource(
            uri=str(row.uri),
            name=row.title or row.name,
            mime_type=row.mime_type or "",
            size=row.size or 0,
            modified=(row.annotations.last_modified or "") if row.annotations else "",
        )
        for row in page.resources
    ]
    return resources, page.next_cursor


async def read_resource(client: Client[Any], uri: str) -> bytes:
    """Return a resource's content; of several texts all, else the first that is a file."""
    contents = (await client.read_resource_mcp(uri)).contents
    texts = [part.text for part in contents if isinstance(part, wire.TextResourceContents)]
    if texts:
        return "\n\n".join(texts).encode(errors="replace")
    blobs = (part.blob for part in contents if isinstance(part, wire.BlobResourceContents))
    try:
        return b64decode(next(blobs, ""), validate=True)
    except binascii.Error as error:
        raise ToolError(_("The server sent a file that can't be decoded.")) from error


def sign_in_secrets(client: Client[Any]) -> Collection[str]:
    """Return the tokens that were sent to the server so far; it grows."""
    provider = _sign_in_provider(client)
    return provider.secrets if provider else ()


def _sign_in_provider(client: Client[Any]) -> oauth.SignInProvider | None:
    auth = getattr(client.transport, "auth", None)
    return auth if isinstance(auth, oauth.SignInProvider) else None


async def explain(error: Exception, client: Client[Any]) -> str:
    """Return what went wrong with a server, as a sentence."""
    transport = client.transport
    if isinstance(error, ToolError):
        return str(error)  # we disconnected, and that is why
    for cause in _causes(error):
        provider = _sign_in_provider(client)
        if provider and isinstance(cause, oauth.RegistrationError):
            return provider.explain_registration(cause)
    if isinstance(transport, StdioTransport) and (process := transport.process):
        # Its exit is only known a moment after its streams are closed.
        if not isinstance(error, TimeoutError) and await process.wait(EXIT_WAIT_SECONDS):
            if sentence := transport.config.limits.exceeded(process.status):
                return sentence
            ended = _("The program exited with status %(status)s.", status=process.status)
            return _quote_output(ended, process.stderr_tail)
        if transport.unread:
            sentence = _(
                "%(sentence)s It wrote %(count)s lines that aren't MCP messages.",
                sentence=_error_reason(error),
                count=transport.unread,
            )
            return _quote_output(sentence, process.stderr_tail)
    return _error_reason(error)


def is_connection_error(error: Exception, client: Client[Any]) -> bool:
    """Whether the connection failed, rather than the server returning an error."""
    if not isinstance(error, MCPError) or is_session_expired(client):
        return True
    return error.code in {wire.CONNECTION_CLOSED, wire.REQUEST_TIMEOUT}


def needs_sign_in(error: BaseException) -> bool:
    """Whether the server wants a user to sign in, who isn't there."""
    return any(isinstance(cause, SignInRequired) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that led to it."""
    yield error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for cause in (*inner, error.__cause__):
        if cause is not None:
            yield from _causes(cause)


def is_session_expired(client: Client[Any]) -> bool:
    """Whether the server has forgotten our session, so that it doesn't handle requests."""
    return isinstance(client.transport, HttpTransport) and client.transport.is_expired


def _quote_output(sentence: str, output: str) -> str:
    if not output:
        return sentence
    return _("%(sentence)s Last output: %(words)s", sentence=sentence, words=output[-600:])


def _error_reason(error: BaseException) -> str:
    if isinstance(error, ExceptionGroup):
        return _error_reason(error.exceptions[0])
    match error:
        case TimeoutError():
            return _("The server didn't respond in time.")
        case httpx2.HTTPStatusError():
            return _("The server returned HTTP %(status)s.", status=error.response.status_code)
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return _("Couldn't connect to the server.")
        case httpx2.HTTPError():
            return _("The connection was lost (%(name)s).", name=type(error).__name__)
        case ValidationError():
            return _("The server's response doesn't follow the MCP specification.")
        case RuntimeError() if error.__cause__ is not None:
            return _error_reason(error.__cause__)
    return str(error) or type(error).__name__
