"""The ASGI application: pages, sockets and health probes."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import WebsocketDenier  # noqa: E402
from channels.sessions import CookieMiddleware  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.exceptions import RequestAborted  # noqa: E402
from django.core.handlers.asgi import ASGIHandler, ASGIRequest  # noqa: E402
from django.http.response import HttpResponseBase  # noqa: E402
from django.urls import path, re_path  # noqa: E402
from django.utils.module_loading import import_string  # noqa: E402

from agents.access.requests import Application, Receive, Scope, Send  # noqa: E402
from agents.web.asgi import health, request_body  # noqa: E402
from agents.web.consumers import RunConsumer  # noqa: E402
from agents.web.library.live import CollectionConsumer  # noqa: E402
from chat.api.mcp import endpoint as mcp  # noqa: E402
from chat.embedding.socket import EmbedConsumer  # noqa: E402
from chat.live.consumers import ChatConsumer  # noqa: E402
from project.programs import RefusingHandler  # noqa: E402

DENIED = WebsocketDenier.as_asgi()

# Channels routes ASGI apps with Django's functions for views.
route: Any = path
route_pattern: Any = re_path

sockets = URLRouter(
    [
        route("ws/chat/<int:pk>/", ChatConsumer.as_asgi()),
        route("ws/embed/<str:public_id>/", EmbedConsumer.as_asgi()),
        route("ws/runs/<int:pk>/", RunConsumer.as_asgi()),
        route("ws/library/<int:pk>/", CollectionConsumer.as_asgi()),
        route_pattern("", DENIED),
    ]
)


# Protocols of programs. The REST API is another matter: it has exports.
PROTOCOL_PATHS = tuple(prefix for prefix in settings.API_PREFIXES if prefix != "/api/v1/")
REST_STREAM_PATH = re.compile(r"/api/v1/runs/[0-9]+/events")


def has_short_queries(scope: Scope) -> bool:
    """Whether a request comes from a program, whose queries take little time."""
    if request_body.BODY_FILE in scope.get("extensions", {}):
        return False
    if scope["path"].startswith(PROTOCOL_PATHS):
        return True
    is_stream = any(
        name == b"accept" and b"text/event-stream" in value for name, value in scope["headers"]
    )
    return is_stream and REST_STREAM_PATH.fullmatch(scope["path"]) is not None


class QuietHandler(RefusingHandler, ASGIHandler):
    """Django's handler: takes bodies as files, and logs no traceback for clients that leave."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request in a thread of its own, with its own connection to the database.

        What only has short queries shares the thread and the connection of pages' sockets.
        """
        await (self.handle if has_short_queries(scope) else super().__call__)(
            scope, receive, send
        )

    def create_request(
        self, scope: Any, body_file: Any
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        received = scope.get("extensions", {}).get(request_body.BODY_FILE, body_file)
        return super().create_request(scope, received)

    async def listen_for_disconnect(self, receive: Any) -> None:
        # The task's exception would never be read if Daphne cancels the request just then.
        with suppress(RequestAborted):
            await super().listen_for_disconnect(receive)


class OriginValidator:
    """Accepts sockets only from these exact origins.

    Channels' own validator parses an origin first, and fails on a malformed one.
    """

    def __init__(self, application: Application, origins: Iterable[str]) -> None:
        self.application = application
        self.origins = {origin.lower().encode() for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        is_ours = len(origins) == 1 and origins[0] in self.origins
        await (self.application if is_ours else DENIED)(scope, receive, send)


# Sockets of programs, by path: loaded by the first connection, as their other addresses are.
PROGRAM_SOCKETS = {"/v1/responses": "chat.api.openai.socket.serve"}


class ProgramSockets:
    """Lets programs with a key connect to their sockets, beside those of pages."""

    def __init__(self, pages: Application) -> None:
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = PROGRAM_SOCKETS.get(scope["path"])
        await (self.pages if name is None else import_string(name))(scope, receive, send)


# Called by machines, without a password and by any host name.
machine_routes = [
    route("health/", health.handle_health),
    route("healthz", health.handle_live),
    route("readyz", health.handle_ready),
]
if settings.METRICS:
    from agents.runs.observability import metrics

    machine_routes.append(route("metrics", metrics.handle_request))

pages: Any = QuietHandler()
program_routes = [route_pattern(mcp.PATHS, mcp.McpEndpoint(pages))]
application = ProtocolTypeRouter(
    {
        "http": URLRouter([*machine_routes, *program_routes, route_pattern("", pages)]),
        "websocket": ProgramSockets(
            OriginValidator(CookieMiddleware(sockets), settings.ORIGINS)
        ),
    }
)
