"""The secrets of an HTTP tool, in every form in which a response may contain them."""

import base64
import binascii
import json
import re
from collections.abc import Container, Mapping
from contextlib import suppress
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
    values = [value for name, value in headers.items() if not PUBLIC_HEADERS.fullmatch(name)]
    values += [v for name, v in query if name in secret_names or SECRET_NAMES.search(name)]
    secrets = set()
    for value in values:
        # `Basic bmFtZTp3b3Jk` whole, without its scheme, and decoded.
        scheme, _, token = value.partition(" ")
        secrets |= {value, token}
        if scheme.lower() == "basic":
            with suppress(binascii.Error, UnicodeDecodeError):
                pair = base64.b64decode(token, validate=True).decode()
                secrets |= {pair, pair.partition(":")[2]}
    forms = {form for s in secrets for form in (s, json.dumps(s)[1:-1], quote(s, safe=""))}
    return sorted((f for f in forms if len(f) >= MIN_SECRET_CHARS), key=len, reverse=True)
