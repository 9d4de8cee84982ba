"""Requests with their redirects."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from agents.engine.sentences import Sentence as _
from agents.engine.tool import timeout_message

from .body import Response
from .errors import EgressFailed, EgressRefused, HostNotFound
from .policy import Egress, validate_url
from .transport import create_client

MAX_REDIRECTS = 3
SAFE_METHODS = frozenset({"GET", "HEAD"})
METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
CROSS_ORIGIN_HEADERS = frozenset({"accept", "accept-language", "user-agent"})
UNREACHABLE_REASONS = {
    socket.gaierror: _("the host name couldn't be resolved"),
    httpx2.ConnectTimeout: _("the connection timed out"),
    ssl.SSLError: _("the TLS connection failed"),
    httpx2.ConnectError: _("the connection was refused"),
}


async def fetch(
    method: str,
    url: str,
    *,
    policy: Egress,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Response:
    """Fetch a response; raise EgressRefused or EgressFailed.

    Redirects are only followed for reads, each checked like the first URL.
    """
    if method not in METHODS:
        raise EgressRefused(_("The method %(method)s isn't allowed.", method=repr(method)))
    request = _Request(method, validate_url(url), dict(headers or {}), content)
    try:
        async with asyncio.timeout(policy.timeout), create_client(policy) as client:
            return await _follow_redirects(client, request)
    except TimeoutError as error:
        raise EgressFailed(timeout_message(request.url.host, policy.timeout)) from error
    except UnicodeEncodeError as error:
        raise EgressFailed(_malformed_message(request.url.host), was_sent=False) from error
    except httpx2.HTTPError as error:
        raise _explain(error) from error


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    content: bytes | None


async def _follow_redirects(client: httpx2.AsyncClient, request: _Request) -> Response:
    for _redirect in range(MAX_REDIRECTS + 1):
        async with client.stream(
            request.method, request.url, headers=request.headers, content=request.content
        ) as reply:
            content = await reply.aread()
        response = Response(
            status=reply.status_code,
            headers=dict(reply.headers),
            content=content,
            url=str(request.url),
        )
        location = response.headers.get("location", "")
        if (
            response.status not in REDIRECT_STATUSES
            or request.method not in SAFE_METHODS
            or not location
        ):
            return response
        request = _redirect_request(request, location)
    raise EgressFailed(_("Too many redirects (more than %(limit)s).", limit=MAX_REDIRECTS))


def _redirect_request(request: _Request, location: str) -> _Request:
    """Return the next request; another origin only gets public headers."""
    try:
        url = validate_url(request.url.join(location))
    except (httpx2.InvalidURL, ValueError) as error:
        raise EgressRefused(
            _("%(host)s redirects to an invalid URL.", host=request.url.host)
        ) from error
    if request.url.scheme == "https" and url.scheme == "http":
        raise EgressRefused(
            _(
                "%(host)s redirects from https to http, which isn't allowed.",
                host=request.url.host,
            )
        )
    is_same = (request.url.scheme, request.url.netloc) == (url.scheme, url.netloc)
    headers = {
        k: v for k, v in request.headers.items() if is_same or k.lower() in CROSS_ORIGIN_HEADERS
    }
    return _Request(request.method, url, headers, None)


def _explain(error: httpx2.HTTPError) -> EgressFailed:
    """Return our own message: the library's may quote a header, and so a secret."""
    host = error.request.url.host
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        causes = []
        cause: BaseException | None = error
        while cause is not None:
            causes.append(cause)
            cause = cause.__cause__ or cause.__context__
        kinds = (
            kind for kind in UNREACHABLE_REASONS if any(isinstance(c, kind) for c in causes)
        )
        kind = next(kinds)
        failure = HostNotFound if kind is socket.gaierror else EgressFailed
        reason = UNREACHABLE_REASONS[kind]
        return failure(
            _("Couldn't connect to %(host)s: %(reason)s.", host=host, reason=reason),
            was_sent=False,
        )
    if isinstance(error, httpx2.LocalProtocolError):
        return EgressFailed(_malformed_message(host), was_sent=False)
    if isinstance(error, httpx2.TimeoutException):
        return EgressFailed(_("%(model)s didn't respond in time.", model=host))
    return EgressFailed(
        _("The response from %(host)s was cut off or is unreadable.", host=host)
    )


def _malformed_message(host: str) -> str:
    return _("The request to %(host)s wasn't sent: a header is malformed.", host=host)
