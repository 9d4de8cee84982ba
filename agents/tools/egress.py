"""The one way out: requests to addresses that a person, a model or a row can choose.

A name is looked up once, all its addresses are checked, and the connection is made to one of
those that were checked: what the name means a moment later changes nothing. The time, the
headers and the size of an answer are limited, its size after it was unpacked.
"""

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import Any

import httpcore2
import httpx2

from agents.engine.errors import ToolError
from agents.tools.addresses import (
    LOCAL,
    AllowList,
    IPAddress,
    bare,
    is_host,
    is_port,
    kind_of,
    literal,
)

MOST_REDIRECTS = 3
MOST_HEADERS = 100
MOST_HEADER_BYTES = 32_768
PIECE = 65_536
READING = frozenset({"GET", "HEAD"})
METHODS = READING | {"POST", "PUT", "PATCH", "DELETE"}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
FOR_ANYBODY = frozenset({"accept", "accept-language", "user-agent"})

Resolve = Callable[[str, int], Awaitable[Iterable[str]]]

UNREACHABLE = {
    socket.gaierror: "no host of this name is known",
    httpx2.ConnectTimeout: "nobody answered in time",
    ssl.SSLError: "the secure connection failed",
    httpx2.ConnectError: "the connection was refused",
}


class EgressRefused(ToolError):
    """This address may not be asked."""

    advice = "Check the address, or ask an administrator to allow it."


class EgressFailed(ToolError):
    """There was no answer that can be used."""

    is_passing = True

    def __init__(self, message: str = "", *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent  # so it may have been done, whatever was asked for


class AnswerTooLarge(EgressFailed):
    """The answer is larger than allowed."""

    is_passing = False


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, from the system, in the order in which to try them."""
    found = await asyncio.get_running_loop().run_in_executor(
        _resolvers(), lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return [str(address[0]) for *_, address in found]


@cache
def _resolvers() -> ThreadPoolExecutor:
    """Threads of their own: a name server that hangs must not use up the shared ones."""
    return ThreadPoolExecutor(8, thread_name_prefix="look-up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress:
    """Where requests may go, how long one may take in all, how much may come back."""

    allow: AllowList = AllowList()
    timeout: float = 20.0
    most_bytes: int = 5_000_000
    trust: ssl.SSLContext | None = None  # None trusts whom the system trusts
    resolve: Resolve = look_up

    @property
    def patience(self) -> float:
        """Seconds to look up, to connect and to secure, each: together less than all."""
        return self.timeout / 4

    async def addresses(self, host: str, port: int) -> list[str]:
        """Where a host is; raises EgressRefused where one of its addresses is not allowed."""
        found = list(dict.fromkeys(await self.resolve(host, port)))
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "The name has no address.")
        for address in map(ip_address, found):
            if kind := self._objection(host, port, address):
                raise EgressRefused(
                    f"{host} was not asked, because its address {address} is {kind}. "
                    f"An administrator can add '{_netloc(host, port)}' to ASHIATO_EGRESS_ALLOW."
                )
        return found

    def foreseen(self, url: str) -> str:
        """The `host:port` that would have to be allowed, where the address itself says so.

        Empty where it is allowed or public, or where only a look-up of its name could tell.
        """
        host, port = _place(admit(url))
        addresses = LOCAL if bare(host) == "localhost" else literal(host)
        objections = [self._objection(host, port, address) for address in addresses]
        return _netloc(host, port) if objections and all(objections) else ""

    def _objection(self, host: str, port: int, address: IPAddress) -> str:
        """What an address is that may not be asked; empty where it may."""
        return "" if self.allow.admits(host, port, address) else kind_of(address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back, unpacked; the names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    content: bytes


async def fetch(
    method: str,
    url: str,
    *,
    policy: Egress,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Response:
    """The whole answer; raises EgressRefused or EgressFailed.

    Redirects are followed where something is only read, each checked like the first address.
    """
    if method not in METHODS:
        raise EgressRefused(f"{method!r} is not a method that is sent.")
    asked = _Asked(method, admit(url), dict(headers or {}), content)
    try:
        async with asyncio.timeout(policy.timeout), client(policy) as http:
            return await _followed(http, asked)
    except TimeoutError as error:
        late = f"{asked.url.host} did not answer within {policy.timeout:g} seconds."
        raise EgressFailed(late) from error
    except UnicodeEncodeError as error:
        raise EgressFailed(_malformed(asked.url.host), was_sent=False) from error
    except httpx2.HTTPError as error:
        raise _explained(error) from error


def admit(url: str | httpx2.URL) -> httpx2.URL:
    """The address, where it has a form that may be asked; raises EgressRefused."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise EgressRefused("This is not a whole web address.") from error
    if parsed.scheme not in {"http", "https"}:
        raise EgressRefused("Only addresses that begin with http:// or https:// are asked.")
    if parsed.userinfo:
        raise EgressRefused("An address with a name or a password in it is not asked.")
    if not is_port(parsed.port):
        raise EgressRefused(f"{parsed.port} is not a port.")
    if not is_host(parsed.raw_host.decode()):
        raise EgressRefused(f"{parsed.host!r} is not the name of a host.")
    return parsed


def client(
    policy: Egress,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
    follow_redirects: bool = False,
) -> httpx2.AsyncClient:
    """A client whose every request obeys the policy; FastMCP takes `partial(client, policy)`.

    It follows no redirect, even if asked to: who wants to go on sends a new request, and
    decides what goes along.
    """
    return httpx2.AsyncClient(
        transport=Transport(policy),
        headers={"User-Agent": "Ashiato", **(headers or {})},
        timeout=timeout or httpx2.Timeout(policy.timeout, connect=policy.patience),
        auth=auth,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        trust_env=False,
    )


class Transport(httpx2.AsyncBaseTransport):
    """Sends what may be sent, and hands on no more of an answer than is allowed."""

    def __init__(self, policy: Egress) -> None:
        self._policy = policy
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=policy.trust or _trust(),
            network_backend=_Network(policy),
            keepalive_expiry=5,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = admit(request.url)
        request.headers.update({"Host": url.netloc.decode(), "Accept-Encoding": "gzip"})
        with _translated():
            reply = await self._pool.handle_async_request(_raw(request))
        body = _Body(reply, url.host, self._policy.most_bytes)
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


class _Network(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that were checked, and to nothing else."""

    def __init__(self, policy: Egress) -> None:
        self._policy = policy
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, *_: Any, **__: Any
    ) -> httpcore2.AsyncNetworkStream:
        *others, last = await self._addresses(host, port)
        share = self._policy.patience / (len(others) + 1)
        for address in others:
            try:
                return await self._sockets.connect_tcp(address, port, share)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._sockets.connect_tcp(last, port, share)

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            async with asyncio.timeout(self._policy.patience):
                return await self._policy.addresses(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("no name server answered") from error
        except socket.gaierror as error:
            raise httpcore2.ConnectError("the name is not known") from error

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Body(httpx2.AsyncByteStream):
    """The content of an answer, unpacked in small pieces and counted."""

    def __init__(self, reply: httpcore2.Response, host: str, most: int) -> None:
        self._reply = reply
        self._host = host
        self._most = most
        self._gzip: _Gzip | None = None

    def headers(self) -> httpx2.Headers:
        """The headers as they are true of the content once it is unpacked."""
        raw = self._reply.headers
        size = sum(len(name) + len(value) for name, value in raw)
        if len(raw) > MOST_HEADERS or size > MOST_HEADER_BYTES:
            raise EgressFailed(f"{self._host} sent more headers than are taken.")
        headers = httpx2.Headers(raw)
        packing = headers.pop("content-encoding", "identity").strip().lower()
        if packing in {"gzip", "x-gzip"}:
            headers.pop("content-length", None)
            self._gzip = _Gzip()
        elif packing != "identity":
            raise EgressFailed(f"{self._host} packed its answer as {packing[:20]!r}.")
        return headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = given = 0
        with _translated(), self._readable():
            async for data in self._reply.aiter_stream():
                received += len(data)
                for piece in self._gzip.pieces(data) if self._gzip else [data]:
                    given += len(piece)
                    self._check(given)
                    yield piece
                self._check(received)
        if self._gzip and received and not self._gzip.is_whole:
            raise EgressFailed(f"The answer of {self._host} was cut off.")

    def _check(self, size: int) -> None:
        if size > self._most:
            raise AnswerTooLarge(
                f"The answer of {self._host} is larger than {self._most:,} bytes."
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except zlib.error as error:
            raise EgressFailed(f"The answer of {self._host} cannot be unpacked.") from error

    async def aclose(self) -> None:
        await self._reply.aclose()


class _Gzip:
    """Unpacks as much as is asked for at a time: a kilobyte may hold a megabyte."""

    def __init__(self) -> None:
        self._member = _member()

    @property
    def is_whole(self) -> bool:
        return bool(self._member.eof)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        is_more = True
        while is_more:
            if self._member.eof:
                self._member = _member()
            piece = self._member.decompress(data, PIECE)
            yield piece
            data = self._member.unused_data or self._member.unconsumed_tail
            is_more = bool(data) or (len(piece) == PIECE and not self._member.eof)


def _member() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


@dataclass(frozen=True, slots=True)
class _Asked:
    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    content: bytes | None


async def _followed(http: httpx2.AsyncClient, asked: _Asked) -> Response:
    for _ in range(MOST_REDIRECTS + 1):
        response = await _answer(http, asked)
        place = response.headers.get("location", "")
        if response.status not in REDIRECTS or asked.method not in READING or not place:
            return response
        asked = _redirected(asked, place)
    raise EgressFailed(f"There were more than {MOST_REDIRECTS} redirects.")


async def _answer(http: httpx2.AsyncClient, asked: _Asked) -> Response:
    async with http.stream(
        asked.method, asked.url, headers=asked.headers, content=asked.content
    ) as reply:
        content = await reply.aread()
    return Response(status=reply.status_code, headers=dict(reply.headers), content=content)


def _redirected(asked: _Asked, place: str) -> _Asked:
    """The next request; to another origin go only the headers that anybody may read."""
    try:
        url = admit(asked.url.join(place))
    except (httpx2.InvalidURL, ValueError) as error:
        raise EgressRefused(f"{asked.url.host} redirects to no web address.") from error
    if asked.url.scheme == "https" and url.scheme == "http":
        raise EgressRefused(f"{asked.url.host} redirects to an address that is not secured.")
    is_same = (asked.url.scheme, asked.url.netloc) == (url.scheme, url.netloc)
    kept = {k: v for k, v in asked.headers.items() if is_same or k.lower() in FOR_ANYBODY}
    return _Asked(asked.method, url, kept, None)


def _raw(request: httpx2.Request) -> httpcore2.Request:
    url = request.url
    return httpcore2.Request(
        request.method,
        httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        ),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


@contextmanager
def _translated() -> Iterator[None]:
    """The errors of the connection as a client knows them: there they have the same names."""
    try:
        yield
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as e:
        raise getattr(httpx2, type(e).__name__)(str(e)) from e


def _explained(error: httpx2.HTTPError) -> EgressFailed:
    """In words, and none of them the library's: it may quote a header, and thus a secret."""
    host = error.request.url.host
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        causes = list(_causes(error))
        kinds = (kind for kind in UNREACHABLE if any(isinstance(c, kind) for c in causes))
        reason = UNREACHABLE[next(kinds)]
        return EgressFailed(f"Could not reach {host}: {reason}.", was_sent=False)
    if isinstance(error, httpx2.LocalProtocolError):
        return EgressFailed(_malformed(host), was_sent=False)
    if isinstance(error, httpx2.TimeoutException):
        return EgressFailed(f"{host} did not answer in time.")
    return EgressFailed(f"The answer of {host} was cut off or cannot be read.")


def _malformed(host: str) -> str:
    return f"{host} was not asked: a header is malformed."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def warm() -> None:
    """Read the certificates before somebody waits for it."""
    _trust()


@cache
def _trust() -> ssl.SSLContext:
    """Made once: reading all certificates takes longer than a request."""
    return httpx2.create_ssl_context()


def _place(url: httpx2.URL) -> tuple[str, int]:
    return url.host, url.port or (443 if url.scheme == "https" else 80)


def _netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
