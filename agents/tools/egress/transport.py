"""A transport that connects only to checked addresses."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpcore2
import httpx2

from .body import LimitedBody
from .errors import EgressFailed, translate_errors
from .policy import Egress, validate_url


def create_client(
    policy: Egress,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
    follow_redirects: bool = False,
) -> httpx2.AsyncClient:
    """Return a client whose requests obey the policy; FastMCP takes `partial(client, policy)`.

    It never follows redirects: the caller sends a new request and decides what it contains.
    """
    return httpx2.AsyncClient(
        transport=EgressTransport(policy),
        headers={"User-Agent": "Ashiato", **(headers or {})},
        timeout=timeout or httpx2.Timeout(policy.timeout, connect=policy.patience),
        auth=auth,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        trust_env=False,
    )


class EgressTransport(httpx2.AsyncBaseTransport):
    """Sends allowed requests, and limits their responses."""

    def __init__(self, policy: Egress) -> None:
        self._policy = policy
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=policy.trust or _ssl_context(),
            network_backend=_CheckedNetwork(policy),
            keepalive_expiry=5,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = validate_url(request.url)
        request.headers.update({"Host": url.netloc.decode(), "Accept-Encoding": "gzip"})
        with translate_errors():
            reply = await self._pool.handle_async_request(
                httpcore2.Request(
                    request.method,
                    httpcore2.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        body = LimitedBody(reply, url.host, self._policy.most_bytes)
        try:
            headers = body.headers()
        except EgressFailed:
            await reply.aclose()
            raise
        return httpx2.Response(
            reply.status, headers=headers, stream=body, extensions=reply.extensions
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Only connects to addresses that were checked."""

    def __init__(self, policy: Egress) -> None:
        self._policy = policy
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, *_: Any, **__: Any
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(self._policy.patience):
                *first_addresses, last_address = await self._policy.addresses(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("no name server answered") from error
        except socket.gaierror as error:
            raise httpcore2.ConnectError("the name is not known") from error
        share = self._policy.patience / (len(first_addresses) + 1)
        for address in first_addresses:
            try:
                return await self._sockets.connect_tcp(address, port, share)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._sockets.connect_tcp(last_address, port, share)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def warm_up() -> None:
    """Load the certificates ahead of the first request."""
    _ssl_context()


@cache
def _ssl_context() -> ssl.SSLContext:
    """Create the context once, because loading all certificates takes longer than a request."""
    return httpx2.create_ssl_context()
