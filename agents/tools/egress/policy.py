"""Which addresses a request may go to."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address

import httpx2

from agents.engine.sentences import Sentence as _
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

from .errors import AddressBlocked, EgressRefused

AddressResolver = Callable[[str, int], Awaitable[Iterable[str]]]


async def resolve_host(host: str, port: int) -> list[str]:
    """Return a host's addresses from the system, in the order to try them."""
    return await _look_up(_resolver_threads(), host, port)


async def resolve_in_own_loop(host: str, port: int) -> list[str]:
    """Do the same in a thread of this event loop, which nobody else waits for."""
    return await _look_up(None, host, port)


async def _look_up(threads: ThreadPoolExecutor | None, host: str, port: int) -> list[str]:
    infos = await asyncio.get_running_loop().run_in_executor(
        threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return [str(address[0]) for *_, address in infos]


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
        """Resolve a host; raise AddressBlocked if one of its addresses isn't allowed."""
        addresses = list(dict.fromkeys(await self.resolve(host, port)))
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "The name has no address.")
        for address in map(ip_address, addresses):
            if kind := self._denial_reason(host, port, address):
                # Without the address: the users of a tool read this, too.
                raise AddressBlocked(
                    _(
                        "%(host)s is blocked because its address is %(kind)s. An "
                        "administrator can add %(entry)s to ASHIATO_EGRESS_ALLOW.",
                        host=host,
                        kind=kind,
                        entry=repr(_netloc(host, port)),
                    )
                )
        return addresses

    def required_exemption(self, url: str) -> str:
        """Return the `host:port` to allow, if the URL itself shows that it is needed.

        Empty if it is allowed or public, or if only a lookup could tell.
        """
        host, port = host_and_port(validate_url(url))
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


def validate_url(url: str | httpx2.URL) -> httpx2.URL:
    """Return the URL if its form is allowed; raise EgressRefused."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise EgressRefused(_("This isn't a full URL.")) from error
    if parsed.scheme not in {"http", "https"}:
        raise EgressRefused(_("The URL must start with http:// or https://."))
    if parsed.userinfo:
        raise EgressRefused(_("The URL can't contain a user name or a password."))
    if not is_port(parsed.port):
        raise EgressRefused(_("%(port)s isn't a valid port.", port=parsed.port))
    if not is_host(parsed.raw_host.decode()):
        raise EgressRefused(_("%(host)s isn't a valid host name.", host=repr(parsed.host)))
    return parsed


def host_and_port(url: httpx2.URL) -> tuple[str, int]:
    return url.host, url.port or (443 if url.scheme == "https" else 80)


def _netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
