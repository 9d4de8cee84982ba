"""By whom and from where something is asked for, while a request is answered."""

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.conf import settings
from django.http import HttpRequest

MOST_BROWSER = 200

_request: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


@contextmanager
def of(request: HttpRequest) -> Iterator[None]:
    """Whatever is kept until this is over was done by this request."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


def actor() -> Any:
    """Whoever asks; None where nobody does, as at a terminal."""
    request = _request.get()
    return getattr(request, "user", None)


def place(request: HttpRequest | None = None) -> dict[str, str]:
    """From where, and with what; nothing without a request."""
    request = request or _request.get()
    if request is None:
        return {}
    browser = storable(request.META.get("HTTP_USER_AGENT", ""))[:MOST_BROWSER]
    told = {"address": address(request), "browser": browser}
    return {name: text for name, text in told.items() if text}


def address(request: HttpRequest) -> str:
    """Whom the balancer saw, where there is one in front: it adds them last."""
    seen = request.META.get("REMOTE_ADDR", "")
    if settings.HTTPS:
        seen = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or seen
    try:
        return str(ipaddress.ip_address(seen))
    except ValueError:
        return ""


def masked(address: str) -> str:
    """The network only, as reviewers see it: 203.0.113.0/24."""
    if not address:
        return ""
    known = ipaddress.ip_address(address)
    size = 24 if known.version == 4 else 48
    return str(ipaddress.ip_network(f"{known}/{size}", strict=False))


def storable(text: str) -> str:
    """Without what a database does not take, or a terminal would obey."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return shown.encode(errors="replace").decode()
