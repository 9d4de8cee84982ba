"""The ASGI application at `/mcp`: lets programs in, and passes their requests to the SDK.

Each request is served by itself. Nothing about a client is kept from one to the next, so any
web process can take it, and there is nothing to shut down.
"""

import asyncio
from importlib import import_module
from io import BytesIO
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.translation import gettext as _

from agents.access.audit.request_context import bind_request
from agents.access.requests import Application, Receive, Scope, Send
from agents.db import database
from agents.web import api_access
from agents.web.api_access import ApiRequest
from agents.web.api_errors import error_response, is_api
from agents.web.asgi.request_body import BODY_FILE, REFUSAL
from agents.web.origin import origin_of
from chat.api.calls import Caller

from .context import SCOPE_KEY, McpCall

PATHS = r"^mcp/?$"
MAX_BYTES = 4 * 1024 * 1024


class McpEndpoint:
    """Serves the MCP server's address; `pages` answers what was refused before it got here."""

    def __init__(self, pages: Application) -> None:
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        extensions = scope.get("extensions") or {}
        # Channels routes “//mcp” here, too, which the rest doesn't know as ours.
        if REFUSAL in extensions or not is_api(scope["path"]):
            await self.pages(scope, receive, send)
            return
        body = await _read_body(extensions.get(BODY_FILE), receive)
        if body is None:
            return
        request = ASGIRequest(scope, BytesIO())
        language = translation.get_language_from_request(request)
        refusal, headers = await database.run(_check, request, len(body), language)
        if refusal is not None:
            await _respond(_with_headers(send, headers), refusal)
            return
        call = McpCall(
            caller=Caller(cast(ApiRequest, request).api_key),
            request=request,
            origin=origin_of(request),
            language=language,
            send=_with_headers(send, headers),
        )
        # A thread, because the SDK takes more than a second to load.
        server = await asyncio.to_thread(import_module, "chat.api.mcp.server")
        with translation.override(language), bind_request(request):
            await server.serve({**scope, SCOPE_KEY: call}, _replay(body, receive, call), body)


async def _read_body(file: Any, receive: Receive) -> bytes | None:
    """Return the request's body, up to a byte too much; None if the client left."""
    if file is not None:
        with file:
            content: bytes = await asyncio.to_thread(file.read, MAX_BYTES + 1)
            return content
    body = b""
    while len(body) <= MAX_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return body


def _check(
    request: ASGIRequest, size: int, language: str
) -> tuple[HttpResponse | None, dict[str, str]]:
    """Return why the request isn't served, if it isn't; and the headers of its response."""
    with translation.override(language):
        if (refusal := _wrong_origin(request)) is not None:
            return refusal, {}
        refusal, headers = api_access.admit(request)
        if refusal is None and request.method != "POST":
            # No messages come without a request, so there is no stream to open, and no
            # session to end.
            refusal = error_response(request, 405)
            refusal["Allow"] = "POST"
        if refusal is None and size > MAX_BYTES:
            refusal = error_response(request, 413)
    return refusal, headers


def _wrong_origin(request: HttpRequest) -> HttpResponse | None:
    """Refuse a foreign page that has a browser call us, also by a name that it rebinds."""
    try:
        request.get_host()
    except DisallowedHost:
        return error_response(request, 403, _("This host name isn’t one of this installation."))
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower() not in map(str.lower, settings.ORIGINS):
        return error_response(request, 403, _("Other sites can’t call this address."))
    return None


def _with_headers(send: Send, headers: dict[str, str]) -> Send:
    added = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    added.append((b"x-accel-buffering", b"no"))

    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return send_with_headers


def _replay(body: bytes, receive: Receive, call: McpCall) -> Receive:
    """Return the body that was read once more, then wait for the client to leave."""
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Any:
        if unread:
            return unread.pop()
        message = await receive()
        if message["type"] == "http.disconnect":
            call.has_left.set()
        return message

    return receive_again


async def _respond(send: Send, response: HttpResponse) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.content})
