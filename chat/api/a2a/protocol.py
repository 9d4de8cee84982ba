"""The SDK's routes over our runs, for version 1.x and 0.3 of the protocol."""

import logging

from a2a.server.context import ServerCallContext
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import ServerCallContextBuilder
from django.core.exceptions import PermissionDenied
from django.http.response import HttpResponseBase
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from agents.web.api_access import ApiRequest
from chat.api.calls import Caller

from . import bridge
from .handler import RunRequestHandler

PREFIX = "/a2a"
# A program's mistakes are answered; they aren't errors of the server.
logging.getLogger("a2a").setLevel(logging.CRITICAL)


class _ContextBuilder(ServerCallContextBuilder):
    """Passes on who calls, and which agent the path names."""

    def build(self, request: Request) -> ServerCallContext:
        agent = request.path_params.get("tenant", "")
        state = {**request.state._state, "headers": dict(request.headers), "agent": agent}
        return ServerCallContext(state=state)


def _routes() -> list[Route]:
    handler = RunRequestHandler()
    contexts = _ContextBuilder()
    routes: list[BaseRoute] = []
    for prefix in ("", "/{tenant}"):
        routes += create_jsonrpc_routes(
            handler, f"{prefix}/", contexts, enable_v0_3_compat=True
        )
        if prefix:
            routes += create_jsonrpc_routes(handler, prefix, contexts, enable_v0_3_compat=True)
        routes += create_rest_routes(
            handler, contexts, enable_v0_3_compat=True, path_prefix=prefix
        )
    # A mount repeats what is here with the prefix.
    return [route for route in routes if isinstance(route, Route)]


_ROUTES = _routes()


async def respond(request: ApiRequest) -> HttpResponseBase:
    refusals: list[PermissionDenied] = []
    path = request.path_info.removeprefix(PREFIX)
    state = {"caller": Caller(request.api_key), "request": request, "refusals": refusals}
    response = await bridge.respond(_ROUTES, request, path, state)
    if refusals:  # the protocol leaves that to HTTP
        raise refusals[0]
    return response
