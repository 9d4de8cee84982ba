"""Webhooks by the Standard Webhooks specification: signed POST requests through egress."""

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from standardwebhooks import Webhook

from agents.db.sanitize import sanitize_text
from agents.db.sentences import translate
from agents.engine.errors import AgentError
from agents.models.rotating_secret import SECRET_PREFIX
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress, Response, fetch

TIMEOUT_SECONDS = 10.0
MAX_BYTES = 64 * 1024
EXCERPT_BYTES = 300
ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """What is sent: with each secret that is in use, a signature."""

    url: str
    payload: dict[str, Any]
    secrets: Sequence[str]
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt ended: with a status, or with why there was none."""

    milliseconds: int
    status: int = 0
    excerpt: str = ""
    problem: str = ""

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def error(self) -> str:
        return "" if self.is_accepted else self.problem or f"HTTP {self.status}"

    def as_json(self, at: datetime) -> dict[str, Any]:
        values = {"at": at.isoformat(), "ms": self.milliseconds, "status": self.status}
        return values | {"body": self.excerpt, "error": self.problem}


def verifier(secret: str) -> Webhook:
    """Return what signs and verifies with a secret; one of another service is plain text."""
    return Webhook(secret if secret.startswith(SECRET_PREFIX) else secret.encode())


def send_all(requests: Iterable[WebhookRequest]) -> list[Outcome]:
    """Send these at the same time, from a thread without an event loop."""

    async def gather() -> list[Outcome]:
        return await asyncio.gather(*map(_send, requests))

    return asyncio.run(gather())


async def _send(request: WebhookRequest) -> Outcome:
    body = json.dumps(request.payload, ensure_ascii=False)
    sent_at = datetime.now(UTC)
    signatures = [
        verifier(secret).sign(request.message_id, sent_at, body) for secret in request.secrets
    ]
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Ashiato",
        ID_HEADER: request.message_id,
        TIMESTAMP_HEADER: str(int(sent_at.timestamp())),
        SIGNATURE_HEADER: " ".join(signatures),
    }
    started = time.monotonic()
    response: Response | None = None
    problem = ""
    try:
        response = await fetch(
            "POST", request.url, policy=policy(), headers=headers, content=body.encode()
        )
    except AgentError as error:
        problem = translate(str(error))
    milliseconds = round((time.monotonic() - started) * 1000)
    if response is None:
        return Outcome(milliseconds=milliseconds, problem=problem)
    excerpt = response.content[:EXCERPT_BYTES].decode(errors="replace")
    return Outcome(
        milliseconds=milliseconds, status=response.status, excerpt=sanitize_text(excerpt)
    )


def policy() -> Egress:
    return _policy(tuple(settings.EGRESS_ALLOW))


@lru_cache(maxsize=4)
def _policy(allowed: tuple[str, ...]) -> Egress:
    allow = AllowList.read(allowed)
    return Egress(allow=allow, timeout=TIMEOUT_SECONDS, most_bytes=MAX_BYTES)
