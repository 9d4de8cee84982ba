"""What the handlers know of a request: who sent it, and how to reach them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from django.http import HttpRequest
from django.utils import translation

from agents.access.requests import Send
from agents.db import database
from agents.models import ApiKey
from chat.api.calls import Caller

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
SCOPE_KEY = "ashiato.mcp"


@dataclass(frozen=True, slots=True)
class Session:
    """A client that was greeted before, and whether it can display a form to its user."""

    token: str
    has_forms: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCall:
    """A request to the MCP server."""

    caller: Caller
    request: HttpRequest
    origin: str  # of the installation, as the client calls it
    language: str
    send: Send
    session: Session | None = None  # None for a version of the protocol without a handshake
    has_left: asyncio.Event = field(default_factory=asyncio.Event)

    async def query(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run a function on the database thread, in the client's language."""

        def localized() -> Result:
            with translation.override(self.language):
                return function(*args, **kwargs)

        return await database.run(localized)

    def has(self, scope: ApiKey.Scope) -> bool:
        return scope in self.caller.key.scopes

    def url(self, path: str) -> str:
        """Return the address of a page for the user's browser."""
        return f"{self.origin}{path}"


def of_request(request: Any) -> McpCall:
    """Return what the endpoint has noted in the request's scope."""
    call: McpCall = request.scope[SCOPE_KEY]
    return call
