"""The user and origin of the current request."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from agents.access import api_keys
from agents.models import ApiKey

MAX_BROWSER_CHARS = 200

_is_system: ContextVar[bool] = ContextVar("is_system", default=False)
_request: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


@contextmanager
def bind_request(request: HttpRequest) -> Iterator[None]:
    """Attribute everything recorded in the block to this request."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


@contextmanager
def as_system() -> Iterator[None]:
    """Attribute changes in the block to the program, not to a user."""
    token = _is_system.set(True)
    try:
        yield
    finally:
        _is_system.reset(token)


def is_audited_elsewhere() -> bool:
    """Whether the current change is recorded by a page, or needn't be."""
    return _is_system.get() or _request.get() is not None


def actor() -> Any:
    """Return the requesting user; None without a request, as in a terminal."""
    request = _request.get()
    return getattr(request, "user", None)


def api_key() -> ApiKey | None:
    """Return the key with which a program does something here; None for users."""
    return api_keys.current() or getattr(_request.get(), "api_key", None)


def client_info(request: HttpRequest | None = None) -> dict[str, str]:
    """Return the client's address and browser; empty without a request."""
    request = request or _request.get()
    if request is None:
        return {}
    browser = sanitize(request.META.get("HTTP_USER_AGENT", ""))[:MAX_BROWSER_CHARS]
    info = {"address": client_address(request), "browser": browser}
    return {name: text for name, text in info.items() if text}


def client_address(request: HttpRequest) -> str:
    """Return the client's address; only our own proxies are trusted about it.

    The chain is read from its end, which our own proxy wrote; the first address that isn't ours
    is the client. Anything before it may be made up.
    """
    address = parse_address(request.META.get("REMOTE_ADDR") or "")
    forwarded = request.headers.get("X-Forwarded-For", "").split(",")
    proxies = [ip_network(network) for network in settings.PROXIES]
    while forwarded and address and any(address in network for network in proxies):
        if (previous_hop := parse_address(forwarded.pop())) is None:
            break
        address = previous_hop
    return str(address or "")


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address, also with a port or IPv4-mapped."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def mask_address(address: str) -> str:
    """Return only the network, as reviewers see it: 203.0.113.0/24."""
    if (parsed := parse_address(address)) is None:
        return ""
    prefix_length = 24 if parsed.version == 4 else 48
    return str(ip_network(f"{parsed}/{prefix_length}", strict=False))


def sanitize(text: str) -> str:
    """Remove what a database rejects or a terminal would interpret."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return printable.encode(errors="replace").decode()
