"""Outgoing requests to addresses that a user, a model or a row can choose.

A name is resolved once, all its addresses are checked, and the connection goes to one of them,
so a later change of the name has no effect. Time, headers and the unpacked size of a response
are limited.
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
from agents.engine.tool import timeout_message
from agents.tools.addresses import (
    LOOPBACK_ADDRESSES,
    AllowList,
    IPAddress,
    is_host,
    is_port,
    literal_addresses,
    normalize_host,
    private_kind,
)

MAX_REDIRECTS = 3
MAX_HEADERS = 100
MAX_HEADER_BYTES = 32_768
CHUNK_BYTES = 65_536
SAFE_METHODS = frozenset({"GET", "HEAD"})
METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
CROSS_ORIGIN_HEADERS = frozenset({"accept", "accept-language", "user-agent"})

AddressResolver = Callable[[str, int], Awaitable[Iterable[str]]]

UNREACHABLE_REASONS = {
    socket.gaierror: "the host name couldn't be resolved",
    httpx2.ConnectTimeout: "the connection timed out",
    ssl.SSLError: "the TLS connection failed",
    httpx2.ConnectError: "the connection was refused",
}


class EgressRefused(ToolError):
    """This URL isn't allowed."""

    advice = "Check the URL, or ask an administrator to allow it."


class EgressFailed(ToolError):
    """The server sent no usable response."""

    is_passing = True

    def __init__(self, message: str = "", *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent  # so it may have had an effect


class ResponseTooLarge(EgressFailed):
    """The response is too large."""

    is_passing = False


async def resolve_host(host: str, port: int) -> list[str]:
    """Return a host's addresses from the system, in the order to try them."""
    found = await asyncio.get_running_loop().run_in_executor(
        _resolver_threads(), lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return [str(address[0]) for *_, address in found]


@cache
def _resolver_threads() -> ThreadPoolExecutor:
    """Return a dedicated pool, because a hanging name server must not fill the shared one."""
    return ThreadPoolExecutor(8, thread_name_prefix="look-up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress:
    """Where requests may go, how long they may take, and how much may come back."""

    allow: AllowList = AllowList()
    timeout: float = 20.0
    most_bytes: int = 5_000_000
    trust: ssl.SSLContext | None = None  # None means the system's certificates
    resolve: AddressResolver = resolve_host

    @property
    def patience(self) -> float:
        """Seconds for lookup, connect and TLS each: less than the timeout in total."""
        return self.timeout / 4

    async def addresses(self, host: str, port: int) -> list[str]:
        """Resolve a host; raise EgressRefused if one of its addresses isn't allowed."""
        found = list(dict.fromkeys(await self.resolve(host, port)))
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "The name has no address.")
        for address in map(ip_address, found):
            if kind := self._denial_reason(host, port, address):
                raise EgressRefused(
                    f"{host} is blocked because its address {address} is {kind}. "
                    f"An administrator can add {_netloc(host, port)!r} to ASHIATO_EGRESS_ALLOW."
                )
        return found

    def required_exemption(self, url: str) -> str:
        """Return the `host:port` to allow, if the URL itself shows that it is needed.

        Empty if it is allowed or public, or if only a lookup could tell.
        """
        host, port = _host_and_port(validate_url(url))
        addresses = (
            LOOPBACK_ADDRESSES
            if normalize_host(host) == "localhost"
            else literal_addresses(host)
        )
        objections = [self._denial_reason(host, port, address) for address in addresses]
        return _netloc(host, port) if objections and all(objections) else ""

    def _denial_reason(self, host: str, port: int, address: IPAddress) -> str:
        """Return why an address isn't allowed, or an empty string."""
        return "" if self.allow.allows(host, port, address) else private_kind(address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An unpacked response; header names are in lower case."""

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
    """Fetch a response; raise EgressRefused or EgressFailed.

    Redirects are only followed for reads, each checked like the first URL.
    """
    if method not in METHODS:
        raise EgressRefused(f"The method {method!r} isn't allowed.")
    request = _Request(method, validate_url(url), dict(headers or {}), content)
    try:
        async with asyncio.timeout(policy.timeout), create_client(policy) as http:
            return await _follow_redirects(http, request)
    except TimeoutError as error:
        raise EgressFailed(timeout_message(request.url.host, policy.timeout)) from error
    except UnicodeEncodeError as error:
        raise EgressFailed(_malformed_message(request.url.host), was_sent=False) from error
    except httpx2.HTTPError as error:
        raise _explain(error) from error


def validate_url(url: str | httpx2.URL) -> httpx2.URL:
    """Return the URL if its form is allowed; raise EgressRefused."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise EgressRefused("This isn't a full URL.") from error
    if parsed.scheme not in {"http", "https"}:
        raise EgressRefused("The URL must start with http:// or https://.")
    if parsed.userinfo:
        raise EgressRefused("The URL can't contain a user name or a password.")
    if not is_port(parsed.port):
        raise EgressRefused(f"{parsed.port} isn't a valid port.")
    if not is_host(parsed.raw_host.decode()):
        raise EgressRefused(f"{parsed.host!r} isn't a valid host name.")
    return parsed


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
        with _translate_errors():
            reply = await self._pool.handle_async_request(_to_httpcore(request))
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


class _CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Only connects to addresses that were checked."""

    def __init__(self, policy: Egress) -> None:
        self._policy = policy
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, *_: Any, **__: Any
    ) -> httpcore2.AsyncNetworkStream:
        *others, last = await self._resolve(host, port)
        share = self._policy.patience / (len(others) + 1)
        for address in others:
            try:
                return await self._sockets.connect_tcp(address, port, share)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._sockets.connect_tcp(last, port, share)

    async def _resolve(self, host: str, port: int) -> list[str]:
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
    """The content of a response, unpacked in small pieces and counted."""

    def __init__(self, reply: httpcore2.Response, host: str, most: int) -> None:
        self._reply = reply
        self._host = host
        self._most = most
        self._gzip: _Gzip | None = None

    def headers(self) -> httpx2.Headers:
        """Return the headers as they apply to the unpacked content."""
        raw = self._reply.headers
        size = sum(len(name) + len(value) for name, value in raw)
        if len(raw) > MAX_HEADERS or size > MAX_HEADER_BYTES:
            raise EgressFailed(f"{self._host} sent too many headers.")
        headers = httpx2.Headers(raw)
        packing = headers.pop("content-encoding", "identity").strip().lower()
        if packing in {"gzip", "x-gzip"}:
            headers.pop("content-length", None)
            self._gzip = _Gzip()
        elif packing != "identity":
            raise EgressFailed(
                f"{self._host} sent a response with the unsupported encoding {packing[:20]!r}."
            )
        return headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = decoded = 0
        with _translate_errors(), self._translate_zlib_errors():
            async for data in self._reply.aiter_stream():
                received += len(data)
                for piece in self._gzip.pieces(data) if self._gzip else [data]:
                    decoded += len(piece)
                    self._check_size(decoded)
                    yield piece
                self._check_size(received)
        if self._gzip and received and not self._gzip.is_whole:
            raise EgressFailed(f"The response from {self._host} was cut off.")

    def _check_size(self, size: int) -> None:
        if size > self._most:
            raise ResponseTooLarge(
                f"The response from {self._host} is larger than {self._most:,} bytes."
            )

    @contextmanager
    def _translate_zlib_errors(self) -> Iterator[None]:
        try:
            yield
        except zlib.error as error:
            raise EgressFailed(
                f"The response from {self._host} can't be decompressed."
            ) from error

    async def aclose(self) -> None:
        await self._reply.aclose()


class _Gzip:
    """Unpacks only as much as requested, because a kilobyte may expand to a megabyte."""

    def __init__(self) -> None:
        self._member = _decompressor()

    @property
    def is_whole(self) -> bool:
        return bool(self._member.eof)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        is_more = True
        while is_more:
            if self._member.eof:
                self._member = _decompressor()
            piece = self._member.decompress(data, CHUNK_BYTES)
            yield piece
            data = self._member.unused_data or self._member.unconsumed_tail
            is_more = bool(data) or (len(piece) == CHUNK_BYTES and not self._member.eof)


def _decompressor() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    content: bytes | None


async def _follow_redirects(http: httpx2.AsyncClient, request: _Request) -> Response:
    for _ in range(MAX_REDIRECTS + 1):
        response = await _send(http, request)
        place = response.headers.get("location", "")
        if (
            response.status not in REDIRECT_STATUSES
            or request.method not in SAFE_METHODS
            or not place
        ):
            return response
        request = _redirect_request(request, place)
    raise EgressFailed(f"Too many redirects (more than {MAX_REDIRECTS}).")


async def _send(http: httpx2.AsyncClient, request: _Request) -> Response:
    async with http.stream(
        request.method, request.url, headers=request.headers, content=request.content
    ) as reply:
        content = await reply.aread()
    return Response(status=reply.status_code, headers=dict(reply.headers), content=content)


def _redirect_request(request: _Request, place: str) -> _Request:
    """Return the next request; another origin only gets public headers."""
    try:
        url = validate_url(request.url.join(place))
    except (httpx2.InvalidURL, ValueError) as error:
        raise EgressRefused(f"{request.url.host} redirects to an invalid URL.") from error
    if request.url.scheme == "https" and url.scheme == "http":
        raise EgressRefused(
            f"{request.url.host} redirects from https to http, which isn't allowed."
        )
    is_same = (request.url.scheme, request.url.netloc) == (url.scheme, url.netloc)
    headers = {
        k: v for k, v in request.headers.items() if is_same or k.lower() in CROSS_ORIGIN_HEADERS
    }
    return _Request(request.method, url, headers, None)


def _to_httpcore(request: httpx2.Request) -> httpcore2.Request:
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
def _translate_errors() -> Iterator[None]:
    """Translate connection errors to the client's, which have the same names."""
    try:
        yield
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as e:
        raise getattr(httpx2, type(e).__name__)(str(e)) from e


def _explain(error: httpx2.HTTPError) -> EgressFailed:
    """Return our own message: the library's may quote a header, and so a secret."""
    host = error.request.url.host
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        causes = list(_exception_chain(error))
        kinds = (
            kind for kind in UNREACHABLE_REASONS if any(isinstance(c, kind) for c in causes)
        )
        reason = UNREACHABLE_REASONS[next(kinds)]
        return EgressFailed(f"Couldn't connect to {host}: {reason}.", was_sent=False)
    if isinstance(error, httpx2.LocalProtocolError):
        return EgressFailed(_malformed_message(host), was_sent=False)
    if isinstance(error, httpx2.TimeoutException):
        return EgressFailed(f"{host} didn't respond in time.")
    return EgressFailed(f"The response from {host} was cut off or is unreadable.")


def _malformed_message(host: str) -> str:
    return f"The request to {host} wasn't sent: a header is malformed."


def _exception_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def warm_up() -> None:
    """Load the certificates ahead of the first request."""
    _ssl_context()


@cache
def _ssl_context() -> ssl.SSLContext:
    """Create the context once, because loading all certificates takes longer than a request."""
    return httpx2.create_ssl_context()


def _host_and_port(url: httpx2.URL) -> tuple[str, int]:
    return url.host, url.port or (443 if url.scheme == "https" else 80)


def _netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
