"""URLs of models: what makes them invalid."""

import ipaddress
import socket
from functools import lru_cache
from urllib.parse import urlsplit

INVALID_ADDRESS = "Enter a full URL, e.g. https://host/v1."
ADDRESS_HAS_PASSWORD = "The URL contains a password. Move it to the key field."
METADATA_ADDRESS = "This is a cloud metadata address. It can't serve models."


def address_problem(address: str) -> str:
    """Return why a URL is invalid, or an empty string."""
    return _check_address(address)


@lru_cache(maxsize=256)
def _check_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_whole = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        return INVALID_ADDRESS
    if not is_whole or any(c.isspace() or not c.isprintable() for c in address):
        return INVALID_ADDRESS
    if "@" in parts.netloc:
        return ADDRESS_HAS_PASSWORD
    if parts.fragment or "\\" in address:
        return INVALID_ADDRESS
    return METADATA_ADDRESS if _is_metadata_host(parts.hostname or "") else ""


def _is_metadata_host(host: str) -> bool:
    if host.rstrip(".").lower() in {"metadata.google.internal", "metadata"}:
        return True
    try:
        address = ipaddress.ip_address(_normalize_ipv4(host))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_link_local or mapped.is_multicast or str(address) == "fd00:ec2::254"


def _normalize_ipv4(host: str) -> str:
    """Return an IPv4 address in its usual form; it may be written as one number."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return host
