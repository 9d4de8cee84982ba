"""HTTP to model servers: one client an event loop, whose connections are used again.

aiohttp, because it cost the least CPU of the clients that were measured. Proxies of the
environment are used; redirects are never followed, since a key belongs to one address.
"""

import asyncio
import ipaddress
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from io import BytesIO
from time import monotonic
from typing import Any
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
import certifi
from yarl import URL

from .json_codec import decode
from .provider_errors import StreamGarbled

LARGE = 512 * 1024
LONGEST_HEADER = 64 * 1024
LONGEST_REFUSAL = 64 * 1024
REFUSAL_SECONDS = 5.0
KEPT_SECONDS = 30.0
FEW, MANY, BEAT_STEP, LONGEST_BEAT = 10, 60, 0.015, 0.15
BEHIND_STEP, CATCHES_UP, MOST_BEHIND, LATELY = 0.05, 4, 0.5, 5
DEPTH = 8
TOO_LONG = re.compile(rb"context_length_exceeded|exceed_context_size|maximum prompt length")
TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.I)
REDIRECTED = "It answered with a redirect to another address, which is not followed."


class ConnectError(Exception):
    """Nobody could be reached. These names are those that `failures.explain` knows."""

    def __init__(self, url: URL) -> None:
        super().__init__(str(url.origin()))
        self._request = _Asked(url)


class ConnectTimeout(ConnectError):
    """Nobody answered in time."""


class ReadError(Exception):
    """The connection ended before the answer did."""


class TimeoutException(Exception):
    """The answer did not go on."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, message: str, response: aiohttp.ClientResponse) -> None:
        super().__init__(message)
        self.status_code = response.status
        self.response = response


class ContextWindowExceededError(Refused):
    """It was asked more than the model can read."""


class _Asked:
    def __init__(self, url: URL) -> None:
        self.url = url


class Answer:
    """What a server says, bit by bit, as fast as somebody wants to read it."""

    read_now = 0  # how many are being read at the same time
    late = 0.0  # how far the event loop was behind their beat lately, in seconds

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def read(self) -> bytes:
        """What there is by now, or the next that comes; nothing, at its end."""
        return await self._response.content.readany()

    async def rest(self, seconds: float) -> None:
        """Leave it to the system for a while: many small pieces are read as a large one.

        The more answers there are, the longer, and all go on at the same beat: what is done
        for many in one go costs each of them less. Longer still where the server is behind:
        with less to do for a word it catches up, and does not fall further back.
        """
        connection = self._response.connection
        if not seconds or connection is None or (wire := connection.transport) is None:
            return  # nobody wants to, or all of it is here
        beat = _beat(seconds, Answer.read_now, Answer.late)
        # Not the loop's own clock: uvloop's stands still while it is held up.
        due = (monotonic() // beat + 1) * beat
        wire.pause_reading()
        try:
            await asyncio.sleep(due - monotonic())
        finally:
            wire.resume_reading()
        Answer.late += (monotonic() - due - Answer.late) / (LATELY * Answer.read_now)


@asynccontextmanager
async def post(
    address: str, body: bytes, headers: Mapping[str, str], patience: aiohttp.ClientTimeout
) -> AsyncIterator[Answer]:
    """The body of the answer; who leaves before its end leaves the server, too."""
    url = URL(address)
    try:
        response = await (await _client()).post(
            url,
            # What is large, it wants to send bit by bit.
            data=body if len(body) < LARGE else BytesIO(body),
            headers=headers,
            timeout=patience,
            proxy=_proxy(url),
            allow_redirects=False,
        )
        try:
            if response.status >= 300:
                raise await _refusal(response)
            with _reading():
                yield Answer(response)
        finally:
            response.close()  # a connection whose answer was read to its end is kept
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise _named(error, url) from error


def _beat(seconds: float, answers: int, late: float) -> float:
    """In steps, so that one more or less is no other beat for all."""
    crowd = BEAT_STEP * (max(0, answers - MANY) // FEW)
    beat = max(seconds, min(seconds + crowd, LONGEST_BEAT))
    behind = BEHIND_STEP * (CATCHES_UP * late // BEHIND_STEP)
    return beat + min(behind, MOST_BEHIND)


@contextmanager
def _reading() -> Iterator[None]:
    Answer.read_now += 1
    try:
        yield
    finally:
        Answer.read_now -= 1
        if not Answer.read_now:
            Answer.late = 0.0  # whoever comes next begins with a server that has caught up


async def close() -> None:
    """End the connections of this event loop; one that is run to its end does so by itself."""
    if kept := _CLIENTS.get(asyncio.get_running_loop()):
        await kept[0].aclose()


_Opened = AsyncGenerator[aiohttp.ClientSession, None]
_CLIENTS: dict[asyncio.AbstractEventLoop, tuple[_Opened, aiohttp.ClientSession]] = {}


async def _client() -> aiohttp.ClientSession:
    loop = asyncio.get_running_loop()
    if loop not in _CLIENTS:
        opened = _open(loop)
        _CLIENTS[loop] = opened, await anext(opened)
    return _CLIENTS[loop][1]


async def _open(loop: asyncio.AbstractEventLoop) -> _Opened:
    """Stays half-way: an event loop that ends closes the generators that it has begun."""
    connector = aiohttp.TCPConnector(limit=0, ssl=_tls(), keepalive_timeout=KEPT_SECONDS)
    try:
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "ashiato"},
            max_field_size=LONGEST_HEADER,
        ) as client:
            yield client
    finally:
        _CLIENTS.pop(loop, None)


def warm() -> None:
    """Load what the first request would otherwise wait for, with everybody else."""
    _tls()
    "localhost".encode("idna")


@cache
def _tls() -> ssl.SSLContext:
    """Trusts whom the machine trusts, and the usual ones where it has no list of them."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _proxy(url: URL) -> URL | None:
    """The proxy that the environment names for this address; this machine needs none."""
    host = url.host or ""
    proxies = {} if _is_here(host) else getproxies_environment()
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address or proxy_bypass(host):
        return None
    return URL(address if "://" in address else f"http://{address}")


def _is_here(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _named(error: Exception, url: URL) -> Exception:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return ConnectTimeout(url)
        case aiohttp.ClientConnectorError() | aiohttp.ClientHttpProxyError():
            return ConnectError(url)
        case TimeoutError():
            return TimeoutException()
        case _:
            return ReadError()


async def _refusal(response: aiohttp.ClientResponse) -> Refused:
    """What the server says about it, as far as that comes in time."""
    if response.status < 400:
        return Refused(REDIRECTED, response)
    body = bytearray()
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(REFUSAL_SECONDS):
            while len(body) < LONGEST_REFUSAL and (piece := await response.content.readany()):
                body += piece
    kind = ContextWindowExceededError if TOO_LONG.search(body) else Refused
    return kind(message_in(bytes(body)), response)


def message_in(body: bytes) -> str:
    """The words for a person in an error, for which every provider has a form of its own."""
    text = body.decode(errors="replace").strip()
    if text.startswith("<"):
        title = TITLE.search(text)
        return title[1].strip() if title else ""
    try:
        return _words(decode(body)) if text else ""
    except StreamGarbled:
        return text.partition("\n")[0]


def _words(value: Any, depth: int = DEPTH) -> str:
    if isinstance(value, str) or not depth:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_words(item, depth - 1) for item in value)))
    if not isinstance(value, Mapping):
        return ""
    names = ("error", "message", "detail", "msg")
    said = next(filter(None, (_words(value.get(name), depth - 1) for name in names)), "")
    parts = (_place(value.get("loc")), said, _beneath(value.get("metadata")))
    return ": ".join(filter(None, parts))


def _place(path: Any) -> str:
    """Which field it is about, as servers that check with pydantic say it."""
    return ".".join(map(str, path)) if isinstance(path, list) else ""


def _beneath(metadata: Any) -> str:
    """What the provider behind OpenRouter said."""
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return message_in(raw.encode()) if isinstance(raw, str) else ""
