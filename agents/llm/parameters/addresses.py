"""URLs of models: what makes them invalid."""

import ipaddress
import socket
from contextlib import suppress
from functools import lru_cache
from urllib.parse import urlsplit

from agents.engine.sentences import Sentence as _

INVALID_ADDRESS = _("Enter a full URL, e.g. https://host/v1.")
ADDRESS_HAS_PASSWORD = _("The URL contains a password. Move it to the key field.")
METADATA_ADDRESS = _("This is a cloud metadata address. It can't serve models.")


@lru_cache(maxsize=256)
def address_problem(address: str) -> str:
    """Return why a URL is invalid, or an empty string."""
    try:
        url = urlsplit(address)
        is_complete = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:
        return INVALID_ADDRESS
    if not is_complete or any(c.isspace() or not c.isprintable() for c in address):
        return INVALID_ADDRESS
    if "@" in url.netloc:
        return ADDRESS_HAS_PASSWORD
    if url.fragment or "\\" in address:
        return INVALID_ADDRESS
    return METADATA_ADDRESS if _is_metadata_host(url.hostname or "") else ""


def _is_metadata_host(host: str) -> bool:
    if host.rstrip(".").lower() in {"metadata.google.internal", "metadata"}:
        return True
    with suppress(OSError, UnicodeError):  # IPv4, which may be written as one number
        host = socket.inet_ntoa(socket.inet_aton(host))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_link_local or mapped.is_multicast or str(address) == "fd00:ec2::254"
