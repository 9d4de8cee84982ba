"""The secrets of an HTTP tool, in every form in which a response may contain them."""

import base64
import binascii
import json
import re
from collections.abc import Container, Iterator, Mapping
from urllib.parse import quote

MIN_SECRET_CHARS = 6
PUBLIC_HEADERS = re.compile(
    r"accept(-language)?|content-type|user-agent|prefer|.*version", re.I
)
SECRET_NAMES = re.compile(r"key|token|secret|pass|auth|sig|appid", re.I)


def secret_forms(
    headers: Mapping[str, str], query: list[tuple[str, str]], secret_names: Container[str]
) -> list[str]:
    """Return secrets in every form in which they may come back, longest first."""
    closed = [value for name, value in headers.items() if not PUBLIC_HEADERS.fullmatch(name)]
    closed += [v for name, v in query if name in secret_names or SECRET_NAMES.search(name)]
    known = {part for value in closed for part in _credential_parts(value)}
    forms = {form for s in known for form in (s, json.dumps(s)[1:-1], quote(s, safe=""))}
    return sorted((f for f in forms if len(f) >= MIN_SECRET_CHARS), key=len, reverse=True)


def _credential_parts(value: str) -> Iterator[str]:
    """Yield `Basic bmFtZTp3b3Jk` whole, without its scheme, and decoded."""
    yield value
    scheme, _, token = value.partition(" ")
    yield token
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(token, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield from (pair, pair.partition(":")[2])
