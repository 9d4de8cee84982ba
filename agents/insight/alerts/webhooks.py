"""Webhooks: signed POST requests to addresses that the egress policy allows."""

import asyncio
import hashlib
import hmac
import json
import time
from functools import lru_cache
from typing import Any

from django.conf import settings

from agents.db.sentences import translate
from agents.engine.errors import AgentError
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress, fetch

from .errors import DeliveryFailed

TIMEOUT_SECONDS = 10.0
MAX_BYTES = 64 * 1024
SIGNATURE_HEADER = "X-Ashiato-Signature"
TIMESTAMP_HEADER = "X-Ashiato-Timestamp"
ID_HEADER = "X-Ashiato-Delivery"
EVENT_HEADER = "X-Ashiato-Event"
# Of the other errors a second request would get the same answer.
PASSING_STATUSES = {408, 425, 429}


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature: HMAC-SHA256 over `timestamp.body`."""
    signed = timestamp.encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def post(url: str, payload: dict[str, Any], secret: str, delivery_id: str) -> None:
    """Send it, from a thread without an event loop; raise DeliveryFailed."""
    body = json.dumps(payload, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Ashiato",
        ID_HEADER: delivery_id,
        EVENT_HEADER: str(payload.get("type", "")),
        TIMESTAMP_HEADER: (timestamp := str(int(time.time()))),
    }
    if secret:
        headers[SIGNATURE_HEADER] = sign(secret, timestamp, body)
    try:
        request = fetch("POST", url, policy=policy(), headers=headers, content=body)
        response = asyncio.run(request)
    except AgentError as error:
        raise DeliveryFailed(translate(str(error))) from error
    if not 200 <= response.status < 300:
        is_passing = response.status >= 500 or response.status in PASSING_STATUSES
        raise DeliveryFailed(f"HTTP {response.status}", is_passing=is_passing)


def policy() -> Egress:
    return _policy(tuple(settings.EGRESS_ALLOW))


@lru_cache(maxsize=4)
def _policy(allowed: tuple[str, ...]) -> Egress:
    allow = AllowList.read(allowed)
    return Egress(allow=allow, timeout=TIMEOUT_SECONDS, most_bytes=MAX_BYTES)
