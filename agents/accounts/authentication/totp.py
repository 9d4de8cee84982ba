"""Time-based one-time codes (TOTP, RFC 6238)."""

import base64
import hmac
import secrets
import time
from dataclasses import dataclass
from hashlib import sha1
from typing import Any
from urllib.parse import quote, urlencode

from agents.web import branding

SECRET_BYTES = 20
DIGITS = 6
PERIOD_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class QrSvg:
    """A QR code as an SVG path, and its side length."""

    path: str
    side: int


def new_secret() -> str:
    return base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode()


def provisioning_uri(secret: str, name: str) -> str:
    """Return the URI for the app: account and secret."""
    issuer = branding.current().name
    label = quote(f"{issuer}:{name}")
    return f"otpauth://totp/{label}?{urlencode({'secret': secret, 'issuer': issuer})}"


def render_qr(text: str) -> QrSvg:
    from qrcode.main import QRCode  # imports Pillow if it is installed

    code: QRCode[Any] = QRCode(border=4)
    code.add_data(text)
    rows = code.get_matrix()
    dark = [(x, y) for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark]
    return QrSvg(path="".join(f"M{x} {y}h1v1h-1z" for x, y in dark), side=len(rows))


def generate_code(secret: str, step: int) -> str:
    """Return the code of that period."""
    digest = hmac.digest(base64.b32decode(secret), step.to_bytes(8, "big"), sha1)
    offset = digest[-1] & 0xF
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return str(number % 10**DIGITS).zfill(DIGITS)


def matching_step(secret: str, text: str, last_step: int = 0) -> int | None:
    """Return the unused period this code belongs to: the current or an adjacent one."""
    current_step = int(time.time()) // PERIOD_SECONDS
    code = "".join(text.split()).encode(errors="replace")
    steps = [
        step for step in (current_step - 1, current_step, current_step + 1) if step > last_step
    ]
    matching = [
        s for s in steps if hmac.compare_digest(generate_code(secret, s).encode(), code)
    ]
    return matching[-1] if matching else None
