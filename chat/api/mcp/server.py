"""The MCP server: the protocol is the SDK's, what it serves is computed for each request.

Of this package only `endpoint` and `context` don't import the SDK, which takes a second.
"""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import mcp_types as wire
from django.conf import settings
from django.core.exceptions import PermissionDenied
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from sse_starlette import sse

from agents.access.requests import Receive, Scope, Send
from agents.models import ApiKey
from agents.web.api_errors import ApiError, InsufficientScope, scope_challenge

from . import answering, handshake, prompts, resources, tools
from .context import SCOPE_KEY, McpCall, Session, of_request

logger = logging.getLogger(__name__)
# Otherwise it reports the start and the end of each request.
logging.getLogger("mcp.server").setLevel(logging.WARNING)

INSTRUCTIONS = (
    "Each tool asks an agent or starts a workflow, and reports its steps as progress. A result "
    "has the conversation to continue and the address of the trace. If a run waits for a "
    "decision, tell the user where to decide."
)
# How long a user may think about a form.
STATE_SECONDS = 24 * 3600.0
NOT_FOUND_BEFORE_2026 = -32002
VERSION_HEADER = b"mcp-protocol-version"
SESSION_HEADER = b"mcp-session-id"
NO_SESSION = Session("", has_forms=False)  # of a client that doesn't send its own

# What a key needs for these requests.
SCOPES = {
    "tools/call": ApiKey.Scope.ASK,
    "resources/list": ApiKey.Scope.READ,
    "resources/read": ApiKey.Scope.READ,
    "prompts/list": ApiKey.Scope.READ,
    "prompts/get": ApiKey.Scope.READ,
}

Params = TypeVar("Params")
Result = TypeVar("Result")
Context = answering.Context


def _handler(
    handle: Callable[[McpCall, Context, Params], Awaitable[Result]],
) -> Callable[[Context, Params], Awaitable[Result]]:
    """Turn our errors into the protocol's; unexpected ones say nothing of the inside."""

    async def handler(context: Context, params: Params) -> Result:
        try:
            return await handle(of_request(context.request), context, params)
        except PermissionDenied as error:
            raise MCPError(wire.INVALID_REQUEST, str(error)) from error
        except ApiError as error:
            is_old = context.protocol_version not in MODERN_PROTOCOL_VERSIONS
            is_missing = error.status == 404 and context.method == "resources/read"
            code = NOT_FOUND_BEFORE_2026 if is_old and is_missing else wire.INVALID_PARAMS
            raise MCPError(code, str(error)) from error
        except MCPError:
            raise
        except Exception as error:
            logger.exception("The MCP request %s failed.", context.method)
            raise MCPError(wire.INTERNAL_ERROR, "Internal error") from error

    return handler


@_handler
async def list_tools(call: McpCall, context: Context, params: Any) -> wire.ListToolsResult:
    return wire.ListToolsResult(tools=await call.query(tools.list_tools, call))


@_handler
async def call_tool(
    call: McpCall, context: Context, params: wire.CallToolRequestParams
) -> answering.CallResult:
    return await answering.call_tool(context, params)


@_handler
async def list_resources(
    call: McpCall, context: Context, params: wire.PaginatedRequestParams | None
) -> wire.ListResourcesResult:
    cursor = params.cursor if params else None
    page, next_cursor = await call.query(resources.list_page, call, cursor)
    return wire.ListResourcesResult(resources=page, next_cursor=next_cursor)


@_handler
async def list_templates(
    call: McpCall, context: Context, params: Any
) -> wire.ListResourceTemplatesResult:
    return wire.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)


@_handler
async def read_resource(
    call: McpCall, context: Context, params: wire.ReadResourceRequestParams
) -> wire.ReadResourceResult:
    contents = await call.query(resources.read, call, params.uri)
    return wire.ReadResourceResult(contents=[contents])


@_handler
async def list_prompts(call: McpCall, context: Context, params: Any) -> wire.ListPromptsResult:
    return wire.ListPromptsResult(prompts=await call.query(prompts.list_prompts, call))


@_handler
async def get_prompt(
    call: McpCall, context: Context, params: wire.GetPromptRequestParams
) -> wire.GetPromptResult:
    return await call.query(prompts.fill, call, params.name, params.arguments or {})


def _user_of(context: Context) -> str:
    return str(of_request(context.request).caller.user.pk)


def _create_server() -> Server[Any]:
    server: Server[Any] = Server(
        "ashiato",
        title="Ashiato",
        version="1",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    # What a call waits for goes with its client, sealed, so any process can continue it.
    secret = hashlib.sha256(b"chat.api.mcp" + settings.SECRET_KEY.encode()).digest()
    security = RequestStateSecurity(keys=[secret], ttl=STATE_SECONDS, bind_principal=_user_of)
    server.middleware.append(RequestStateBoundary(security, default_audience="ashiato"))
    return server


_server = _create_server()


async def serve(scope: Scope, receive: Receive, body: bytes) -> None:
    """Serve one request, and end all that it has started."""
    call: McpCall = scope[SCOPE_KEY]
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        message = None  # the SDK says what is wrong
    if await _lacks_scope(call, message):
        return
    headers = dict(scope["headers"])
    version = headers.get(VERSION_HEADER, b"").decode("latin-1")
    if not version or version in HANDSHAKE_PROTOCOL_VERSIONS:
        in_session = await _in_session(call, headers.get(SESSION_HEADER), message)
        if in_session is None:
            return
        call = in_session
    # Otherwise it has a task poll for the end of uvicorn, for ever; here, Daphne ends streams.
    sse._get_shutdown_state().watcher_started = True
    manager = StreamableHTTPSessionManager(_server, stateless=True)
    async with manager.run():
        await manager.handle_request({**scope, SCOPE_KEY: call}, receive, call.send)


async def _lacks_scope(call: McpCall, message: Any) -> bool:
    """Answer a request for which the key has no scope, as apps that can ask for it expect it.

    Its handler would refuse it, too, but inside of a successful response.
    """
    method = message.get("method") if isinstance(message, dict) else None
    scope = SCOPES.get(method) if isinstance(method, str) else None
    if scope is None or call.has(scope):
        return False
    refusal = InsufficientScope(scope)
    error = wire.ErrorData(code=wire.INVALID_REQUEST, message=str(refusal))
    id = message.get("id")
    known_id = id if isinstance(id, int | str) else None
    response = wire.JSONRPCError(jsonrpc="2.0", id=known_id, error=error)
    challenge = scope_challenge(call.request, refusal)
    await _respond(call.send, 403, response, [(b"www-authenticate", challenge.encode())])
    return True


async def _in_session(call: McpCall, token: bytes | None, message: Any) -> McpCall | None:
    """Return a request with its session; None if that has answered it."""
    if not isinstance(message, dict):
        return replace(call, session=NO_SESSION)
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    if message.get("method") == "initialize":
        session = handshake.open_session(call, params.get("capabilities"))
        return replace(call, session=session, send=_with_session(call.send, session))
    if token is None:
        return replace(call, session=NO_SESSION)
    known_session = handshake.read_session(call, token.decode("latin-1"))
    if known_session is None:
        error = wire.ErrorData(code=wire.INVALID_REQUEST, message="Session not found")
        await _respond(call.send, 404, wire.JSONRPCError(jsonrpc="2.0", id=None, error=error))
        return None
    call = replace(call, session=known_session)
    if message.get("method") == "notifications/cancelled":
        client_id = handshake.message_id(known_session, params.get("requestId"))
        await handshake.stop_question(call, client_id)
    elif "method" not in message and "id" in message:
        await handshake.take_answer(call, message)
    else:
        return call
    await _respond(call.send, 202)
    return None


def _with_session(send: Send, session: Session) -> Send:
    """Return `send` so that the response tells the client its session."""

    async def send_with_session(message: Any) -> None:
        if message["type"] == "http.response.start":
            header = (SESSION_HEADER, session.token.encode())
            message = {**message, "headers": [*message.get("headers", ()), header]}
        await send(message)

    return send_with_session


async def _respond(
    send: Send,
    status: int,
    error: wire.JSONRPCError | None = None,
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    body = b"" if error is None else error.model_dump_json(by_alias=True).encode()
    headers = [(b"content-type", b"application/json"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
