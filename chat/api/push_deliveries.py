"""Sends what push notifications of A2A announce, with retries, through the egress policy."""

import asyncio
import json
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.utils import timezone

from agents.db import claims
from agents.db.periodic import periodic
from agents.engine.errors import AgentError
from agents.models import PushTarget
from agents.models.secret import UnreadableSecret
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress, fetch

logger = logging.getLogger(__name__)

# Waiting time after each failed attempt; after the last it is given up until the next change.
BACKOFF = [timedelta(seconds=seconds) for seconds in (30, 120, 600, 3_600, 21_600)]
# Longer than sending takes: a claim of a process that died runs out.
CLAIM = timedelta(minutes=1)
BATCH = 50
AT_ONCE = 10
TIMEOUT_SECONDS = 10.0
MAX_BYTES = 64 * 1024
MEDIA_TYPE = "application/a2a+json"
TOKEN_HEADER = "X-A2A-Notification-Token"


def has_due() -> bool:
    return PushTarget.objects.due().exists()


@periodic("push notifications", every=5, once=True, when=has_due)
def deliver_due() -> int:
    """Send what is due, some at a time; return how many were sent."""
    # What has failed before must not hold up the rest.
    due = PushTarget.objects.due().select_related("run").order_by("attempts", "pk")
    rows = list(due[:BATCH])
    return sum(_deliver(rows[n : n + AT_ONCE]) for n in range(0, len(rows), AT_ONCE))


def _deliver(rows: Sequence[PushTarget]) -> int:
    """Send runs as they are now, unless another process does."""
    current_time = timezone.now()
    claimed: list[tuple[PushTarget, int]] = []
    for row in rows:
        attempts = row.attempts + 1
        if claims.compare_and_set(row, "next_at", current_time + CLAIM, attempts=attempts):
            claimed.append((row, attempts))
    problems = asyncio.run(_send_all([(row, _payload(row)) for row, _attempts in claimed]))
    for (row, attempts), problem in zip(claimed, problems, strict=True):
        _save(row, attempts, problem, current_time)
    return problems.count("")


def _save(row: PushTarget, attempts: int, problem: str, current_time: datetime) -> None:
    """Save how an attempt ended, and when there is another."""
    values: dict[str, Any] = {"sent_status": row.run.status, "next_at": None, "attempts": 0}
    if problem and (waits := BACKOFF[attempts - 1 : attempts]):
        values = {"next_at": current_time + waits[0]}
    elif problem:
        logger.warning("Gave up a push notification of run %s: %s", row.run_id, problem)
    PushTarget.objects.filter(pk=row.pk).update(last_error=problem, **values)


def _payload(row: PushTarget) -> bytes | None:
    """Return what is sent; None if it can't be read, such as a file that is gone."""
    try:
        # The SDK is loaded by the first one.
        payload = import_module("chat.api.a2a.tasks").notification_of(row.run)
        return json.dumps(payload, ensure_ascii=False).encode()
    except Exception:  # those behind it must not wait for it
        logger.exception("Can't build the push notification of run %s.", row.run_id)
        return None


async def _send_all(payloads: list[tuple[PushTarget, bytes | None]]) -> list[str]:
    return await asyncio.gather(*(_send(row, payload) for row, payload in payloads))


async def _send(row: PushTarget, payload: bytes | None) -> str:
    """Send it once; return why it didn't arrive, if it didn't."""
    if payload is None:
        return "Unexpected error. Check the server's log."
    policy = Egress(
        allow=AllowList.read(tuple(settings.EGRESS_ALLOW)),
        timeout=TIMEOUT_SECONDS,
        most_bytes=MAX_BYTES,
    )
    try:
        url, headers = row.url.reveal(), _headers(row)
        response = await fetch("POST", url, policy=policy, headers=headers, content=payload)
    except (AgentError, UnreadableSecret) as error:
        return str(error)
    return "" if 200 <= response.status < 300 else f"HTTP {response.status}"


def _headers(row: PushTarget) -> dict[str, str]:
    headers = {"Content-Type": MEDIA_TYPE, "User-Agent": "Ashiato"}
    if token := row.token.reveal():
        headers[TOKEN_HEADER] = token
    if credentials := row.credentials.reveal():
        headers["Authorization"] = f"{row.scheme} {credentials}"
    return headers
