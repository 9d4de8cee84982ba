"""Classifies addresses as public or private, with an administrator's exemptions."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self

import httpx2

from agents.engine.sentences import Sentence as _

HOST_PATTERN = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.I)

IPAddress = IPv4Address | IPv6Address
LOOPBACK_ADDRESSES = (ip_address("127.0.0.1"), ip_address("::1"))
GLOBAL_UNICAST = ip_network("2000::/3")
NAT64 = ip_network("64:ff9b::/96")
ISATAP = (bytes.fromhex("00005efe"), bytes.fromhex("02005efe"))
# Some Python versions consider these global. The first two lead to cloud services that trust
# virtual machines.
SPECIAL_NETWORKS = [ip_network("168.63.129.16"), ip_network("192.0.0.0/24")]
SPECIAL_NETWORKS += [ip_network("192.88.99.0/24"), ip_network("3fff::/20")]
# Protocol assignments and the deprecated 6to4, which newer Pythons don't consider global.
SPECIAL_NETWORKS += [ip_network("2001::/23"), ip_network("2002::/16")]
PRIVATE_KINDS = {
    "is_unspecified": _("this server itself"),
    "is_loopback": _("this server itself"),
    "is_link_local": _("a link-local address"),
    "is_multicast": _("a multicast address"),
    "is_private": _("a private address"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """A host or network that is allowed although it is private; on one port, or any."""

    name: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    @classmethod
    def read(cls, entry: str) -> Self:
        """Read `host`, `host:port`, an address, or a network such as 10.1.0.0/16."""
        if network := _parse_network(entry):
            return cls(network=network)
        try:
            # A scheme without a default port, or an explicit 80 would be lost.
            url = httpx2.URL(f"any://{entry}")
        except httpx2.InvalidURL as error:
            raise ValueError(_invalid_entry(entry)) from error
        host = url.raw_host.decode()
        is_whole = url.netloc.decode() == str(url).removeprefix("any://")
        if not (is_whole and is_host(host) and is_port(url.port)):
            raise ValueError(_invalid_entry(entry))
        return cls(name=normalize_host(host), network=_parse_network(host), port=url.port)

    def fits(self, host: str, port: int, address: IPAddress) -> bool:
        if self.port is not None and self.port != port:
            return False
        return address in self.network if self.network else self.name == normalize_host(host)


@dataclass(frozen=True, slots=True)
class AllowList:
    """An administrator's exemptions from the address check."""

    exemptions: tuple[Exemption, ...] = ()

    @classmethod
    def read(cls, entries: Iterable[str]) -> Self:
        """Read the entries; raise ValueError about the first invalid one."""
        return cls(tuple(Exemption.read(entry.strip()) for entry in entries))

    def allows(self, host: str, port: int, address: IPAddress) -> bool:
        return any(exemption.fits(host, port, address) for exemption in self.exemptions)


def private_kind(address: IPAddress) -> str:
    """Return what kind of non-public address this is, or an empty string."""
    for inner in _embedded_ipv4(address):
        if kind := private_kind(inner):
            return _("a tunnel to %(kind)s", kind=kind)
    for question, kind in PRIVATE_KINDS.items():
        if getattr(address, question):
            return kind
    is_special = any(address in network for network in SPECIAL_NETWORKS)
    is_routed = address.version == 4 or address in GLOBAL_UNICAST or address in NAT64
    return (
        "" if address.is_global and is_routed and not is_special else _("not a public address")
    )


def _embedded_ipv4(address: IPAddress) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address contains or may be translated to."""
    if address.version == 4:
        return
    if address in NAT64 or address.packed[8:12] in ISATAP:
        yield IPv4Address(address.packed[12:])
    if inner := address.ipv4_mapped or address.sixtofour:
        yield inner
    yield from address.teredo or ()


def _parse_network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def is_host(text: str) -> bool:
    # An address with a zone is only valid on one machine.
    return bool(HOST_PATTERN.fullmatch(text)) or (
        _parse_network(text) is not None and "%" not in text
    )


def is_port(port: int | None) -> bool:
    return port is None or 0 < port < 65_536


def normalize_host(host: str) -> str:
    return host.lower().rstrip(".")


def literal_addresses(host: str) -> tuple[IPAddress, ...]:
    try:
        return (ip_address(host),)
    except ValueError:
        return ()


def _invalid_entry(entry: str) -> str:
    return _(
        "%(entry)s can't be allowed. Enter a host, host:port or a network, e.g. 10.1.0.0/16.",
        entry=repr(entry),
    )
