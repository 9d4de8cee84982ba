"""Addresses of web pages in a text, and when two are the same page."""

import re
from urllib.parse import unquote, urlsplit

MAX_PAGES = 200  # of one text
MAX_URL_CHARS = 2_000
MAX_ENDING = 4  # punctuation after an address, which can also be a part of it
_CHAR = r"[^\s<>\"'`{}|\\^「」『』（）【】、。]"
_ADDRESS = re.compile(
    rf"(?:https?://|www\.){_CHAR}{{1,2000}}"
    rf"|(?<![\w@./-])(?:[a-z0-9-]{{1,63}}\.){{1,8}}[a-z]{{2,24}}(?:/{_CHAR}{{0,2000}})?",
    re.IGNORECASE,
)
_ENDING = ".,;:!?)]*_~"
_ASCII_START = re.compile(r"[\x21-\x7e]+")


def pages_in(text: str) -> dict[str, str]:
    """Return the addresses of the pages that a text names, by their keys."""
    pages: dict[str, str] = {}
    for match in _ADDRESS.finditer(text):
        address = match[0]
        # Japanese can follow an address without a space, or be part of it.
        start = _ASCII_START.match(address)
        for candidate in {address: None, start[0] if start else "": None}:
            end = len(candidate.rstrip(_ENDING))
            for length in range(end, min(len(candidate), end + MAX_ENDING) + 1):
                pages.setdefault(page_key(candidate[:length]), full_address(candidate[:length]))
        if len(pages) >= MAX_PAGES:
            break
    pages.pop("", None)
    return pages


def full_address(url: str) -> str:
    """Return an address with its scheme."""
    address = url.strip()
    has_scheme = re.match(r"[a-z][a-z0-9+.-]*://", address, re.IGNORECASE)
    return address if has_scheme else f"https://{address}"


def page_key(url: str) -> str:
    """Return the same text for all ways to write an address; its query is part of it."""
    address = full_address(url)
    if len(address) > MAX_URL_CHARS:
        return ""
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").rstrip(".")
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not host:
        return ""
    query = f"?{unquote(parts.query)}" if parts.query else ""
    return f"{host}{port}{unquote(parts.path).rstrip('/')}{query}"
