"""HTTP to model servers: one client per event loop, with reused connections.

It uses aiohttp, which took the least CPU of the clients we measured. Proxies of the environment
are used; redirects are never followed, because a key belongs to one address.
"""

import asyncio
import ipaddress
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from io import BytesIO
from time import monotonic
from typing import Any, NamedTuple
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
import certifi
from yarl import URL

from agents.engine.sentences import Sentence as _

from .json_codec import decode
from .provider_errors import StreamGarbled

LARGE_BODY_BYTES = 512 * 1024
MAX_HEADER_BYTES = 64 * 1024
MAX_ERROR_BYTES = 64 * 1024
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
ERROR_TIMEOUT_SECONDS = 5.0
KEEPALIVE_SECONDS = 30.0
STREAMS_PER_STEP = 10
CROWDED_STREAMS = 60
BATCH_STEP_SECONDS = 0.015
MAX_BATCH_SECONDS = 0.15
LAG_STEP_SECONDS = 0.05
LAG_FACTOR = 4
MAX_LAG_SECONDS = 0.5
LAG_WINDOW = 5
MAX_DEPTH = 8
CONTEXT_EXCEEDED = re.compile(
    rb"context_length_exceeded|exceed_context_size|maximum prompt length"
)
HTML_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.I)
REDIRECT_MESSAGE = _("The server redirected to another URL. Redirects aren't followed.")


class ConnectError(Exception):
    """Raised when no connection can be made. `provider_errors.explain` knows these names."""

    def __init__(self, url: URL) -> None:
        super().__init__(str(url.origin()))
        self._request = _FailedRequest(url)


class ConnectTimeout(ConnectError):
    """Raised when connecting takes too long."""


class ReadError(Exception):
    """Raised when the connection ends before the response does."""


class TimeoutException(Exception):
    """Raised when the response stalls."""


class HTTPStatusError(Exception):
    """Raised for an error status."""

    def __init__(
        self, message: str, response: aiohttp.ClientResponse, body: bytes = b""
    ) -> None:
        super().__init__(message)
        self.status_code = response.status
        self.response = response
        self.body = body


class ContextWindowExceededError(HTTPStatusError):
    """Raised when the request exceeds the model's context window."""


class _FailedRequest:
    def __init__(self, url: URL) -> None:
        self.url = url


class StreamingResponse:
    """A response body, read in batches at the reader's pace."""

    response_count = 0  # number of concurrent responses
    lag = 0.0  # recent lag of the event loop behind their clock, in seconds

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def is_over(self) -> bool:
        """Whether everything has arrived and was read."""
        return self._response.content.at_eof()

    async def read(self) -> bytes:
        """Return what has arrived, or wait for more; empty at the end."""
        return await self._response.content.readany()

    async def rest(self, seconds: float) -> None:
        """Pause reading for a while, so that many small pieces are read as a large one.

        The more responses there are, the longer, and all share one clock: work done for many at
        once costs each of them less. The pause grows when the server lags, so that it can catch
        up.
        """
        connection = self._response.connection
        if not seconds or connection is None or (transport := connection.transport) is None:
            return  # no pace, or everything has arrived
        beat = _batch_seconds(seconds, StreamingResponse.response_count, StreamingResponse.lag)
        # Not the loop's own clock, because uvloop's stands still while the loop is blocked.
        due = (monotonic() // beat + 1) * beat
        transport.pause_reading()
        try:
            await asyncio.sleep(due - monotonic())
        finally:
            transport.resume_reading()
        StreamingResponse.lag += (monotonic() - due - StreamingResponse.lag) / (
            LAG_WINDOW * StreamingResponse.response_count
        )


@asynccontextmanager
async def post(
    address: str, body: bytes, headers: Mapping[str, str], client_timeout: aiohttp.ClientTimeout
) -> AsyncIterator[StreamingResponse]:
    """Yield the response body; leaving early closes the connection."""
    url = URL(address)
    try:
        client = await _client()
        response = await client.session.post(
            url,
            # aiohttp streams large bodies.
            data=body if len(body) < LARGE_BODY_BYTES else BytesIO(body),
            headers=headers,
            timeout=client_timeout,
            proxy=_proxy(url, client.proxies),
            allow_redirects=False,
        )
        try:
            if response.status >= 300:
                raise await _status_error(response)
            StreamingResponse.response_count += 1
            try:
                yield StreamingResponse(response)
            finally:
                StreamingResponse.response_count -= 1
                if not StreamingResponse.response_count:
                    StreamingResponse.lag = 0.0  # the next one starts without lag
        finally:
            response.close()  # a fully read connection is reused
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise _translate_error(error, url) from error


async def get_json(address: str, headers: Mapping[str, str]) -> Any:
    """Fetch a small JSON document; the caller sets the deadline."""
    url = URL(address)
    try:
        client = await _client()
        response = await client.session.get(
            url,
            headers={"Accept": "application/json", **headers},
            proxy=_proxy(url, client.proxies),
            allow_redirects=False,
        )
        try:
            if response.status >= 300:
                raise await _status_error(response)
            body = bytearray()
            while piece := await response.content.readany():
                body += piece
                if len(body) > MAX_DOCUMENT_BYTES:
                    raise StreamGarbled("a document that is too large")
            return decode(bytes(body))
        finally:
            response.close()
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
            raise  # the caller's deadline
        raise _translate_error(error, url) from error


def _batch_seconds(seconds: float, response_count: int, lag: float) -> float:
    """Return the shared interval.

    It grows in steps, so that one more response doesn't change it for all.
    """
    extra = BATCH_STEP_SECONDS * (max(0, response_count - CROWDED_STREAMS) // STREAMS_PER_STEP)
    beat = max(seconds, min(seconds + extra, MAX_BATCH_SECONDS))
    lag_seconds = LAG_STEP_SECONDS * (LAG_FACTOR * lag // LAG_STEP_SECONDS)
    return beat + min(lag_seconds, MAX_LAG_SECONDS)


async def close() -> None:
    """Close this event loop's connections; a loop that runs to its end does so itself."""
    if client := _CLIENTS.get(asyncio.get_running_loop()):
        await client.opened.aclose()


class _Client(NamedTuple):
    """An event loop's connections, and the environment's proxies, which take long to find."""

    opened: AsyncGenerator[aiohttp.ClientSession, None]
    session: aiohttp.ClientSession
    proxies: Mapping[str, str]


_CLIENTS: dict[asyncio.AbstractEventLoop, _Client] = {}


async def _client() -> _Client:
    loop = asyncio.get_running_loop()
    if loop not in _CLIENTS:
        opened = _open_client(loop)
        _CLIENTS[loop] = _Client(opened, await anext(opened), getproxies_environment())
    return _CLIENTS[loop]


async def _open_client(
    loop: asyncio.AbstractEventLoop,
) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """Open a client and suspend: an ending event loop closes its async generators."""
    connector = aiohttp.TCPConnector(
        limit=0, ssl=_ssl_context(), keepalive_timeout=KEEPALIVE_SECONDS
    )
    try:
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "ashiato"},
            max_field_size=MAX_HEADER_BYTES,
        ) as client:
            yield client
    finally:
        _CLIENTS.pop(loop, None)


def warm_up() -> None:
    """Load what the first request would otherwise block the event loop for."""
    _ssl_context()
    "localhost".encode("idna")


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return a context that trusts the system's certificates and certifi's."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _proxy(url: URL, proxies: Mapping[str, str]) -> URL | None:
    """Return the environment's proxy for this URL; loopback needs none."""
    address = proxies.get(url.scheme) or proxies.get("all")
    host = url.host or ""
    if not address or host == "localhost" or proxy_bypass(host):
        return None
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return None
    return URL(address if "://" in address else f"http://{address}")


def _translate_error(error: Exception, url: URL) -> Exception:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return ConnectTimeout(url)
        case aiohttp.ClientConnectorError() | aiohttp.ClientHttpProxyError():
            return ConnectError(url)
        case TimeoutError():
            return TimeoutException()
        case _:
            return ReadError()


async def _status_error(response: aiohttp.ClientResponse) -> HTTPStatusError:
    """Return the server's error, as far as it arrives in time."""
    if response.status < 400:
        return HTTPStatusError(REDIRECT_MESSAGE, response)
    body = bytearray()
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(ERROR_TIMEOUT_SECONDS):
            while len(body) < MAX_ERROR_BYTES and (piece := await response.content.readany()):
                body += piece
    kind = ContextWindowExceededError if CONTEXT_EXCEEDED.search(body) else HTTPStatusError
    return kind(error_message(bytes(body)), response, bytes(body))


def error_message(body: bytes) -> str:
    """Return the readable message in an error, which every provider formats differently."""
    text = body.decode(errors="replace").strip()
    if text.startswith("<"):
        title = HTML_TITLE.search(text)
        return title[1].strip() if title else ""
    try:
        return _extract_message(decode(body)) if text else ""
    except StreamGarbled:
        return text.partition("\n")[0]


def _extract_message(value: Any, depth: int = MAX_DEPTH) -> str:
    if isinstance(value, str) or not depth:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_extract_message(item, depth - 1) for item in value)))
    if not isinstance(value, Mapping):
        return ""
    names = ("error", "message", "detail", "msg")
    message = next(
        filter(None, (_extract_message(value.get(name), depth - 1) for name in names)), ""
    )
    location = value.get("loc")  # of a field, in pydantic's format
    field_path = ".".join(map(str, location)) if isinstance(location, list) else ""
    metadata = value.get("metadata")  # of OpenRouter, with the provider's response
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    upstream = error_message(raw.encode()) if isinstance(raw, str) else ""
    return ": ".join(filter(None, (field_path, message, upstream)))
