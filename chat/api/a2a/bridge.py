"""Lets the SDK's Starlette routes answer a request that Django has let in."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.datastructures import CaseInsensitiveMapping
from django.utils.translation import gettext as _
from sse_starlette.event import ensure_bytes
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Message, Scope

from agents.web.api import STILL_HERE, EventStream
from agents.web.api_errors import ApiError

PING_SECONDS = 15.0
# Django or the server computes these.
SKIPPED_HEADERS = {"content-length", "connection"}


async def respond(
    routes: Iterable[Route], request: HttpRequest, path: str, state: dict[str, Any]
) -> HttpResponseBase:
    """Return the response of the route for this path; `state` is that of its request."""
    scope = _scope(request, path, state)
    is_known = False
    for route in routes:
        match, child_scope = route.matches(scope)
        if match is Match.FULL:
            break
        is_known = is_known or match is Match.PARTIAL
    else:
        if is_known:
            return HttpResponse(status=405)
        raise Http404
    scope.update(child_scope)
    # Up to the size that programs may send, which is more than a form may have.
    body = await asyncio.to_thread(request.read)
    try:
        response = await route.endpoint(Request(scope, _receiver(body)))
    except UnicodeEncodeError as error:  # the SDK repeats half a character of the request
        raise ApiError(400, _("The body isn’t valid JSON."), "invalid_json") from error
    headers = CaseInsensitiveMapping(response.headers)
    kept = {name: headers[name] for name in headers if name.lower() not in SKIPPED_HEADERS}
    if isinstance(response, EventSourceResponse):
        return EventStream(_stream(response), headers=kept)
    return HttpResponse(response.body, status=response.status_code, headers=kept)


def _scope(request: HttpRequest, path: str, state: dict[str, Any]) -> Scope:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": path,
        "root_path": "",
        "query_string": request.META.get("QUERY_STRING", "").encode("latin-1"),
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in request.headers.items()
        ],
        "state": state,
    }


def _receiver(body: bytes) -> Any:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _stream(response: EventSourceResponse) -> AsyncIterator[bytes]:
    """Yield server-sent events, and a comment now and then, so that no proxy hangs up."""
    events = aiter(response.body_iterator)
    pending = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(events))
            done, _pending = await asyncio.wait([pending], timeout=PING_SECONDS)
            if not done:
                yield STILL_HERE
                continue
            event = pending.result()
            pending = None
            yield ensure_bytes(event, response.sep)
    except StopAsyncIteration:
        return
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.wait([pending])
