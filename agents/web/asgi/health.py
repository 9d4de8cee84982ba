"""Health probes of this process, for load balancers and monitors.

They are answered before any middleware: balancers have no password and use any host name.
"""

import asyncio
import json
import logging
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from agents.access.requests import Receive, Scope, Send
from agents.models import ServerProcess
from agents.runs import pubsub

from ..consumers import first_frames

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 2.0
MIN_FREE_BYTES = 500_000_000
HEADERS = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


async def handle_health(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond 200 while pages can be served, even if degraded; 503 otherwise.

    Without the channel layer pages update a few seconds late, and with a full disk reads still
    work.
    """
    if not await database.is_ok():
        await _send(send, 503, "down", ["database"])
        return
    trouble = [] if await layer_latency() is not None else ["layer"]
    trouble += ["disk"] if free_bytes() < MIN_FREE_BYTES else []
    trouble += ["connections"] if first_frames.is_full() else []
    await _send(send, 200, "degraded" if trouble else "ok", trouble)


async def handle_live(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond 200 whenever the process answers; if it doesn't, it should be restarted."""
    await _send(send, 200, "alive", [])


async def handle_ready(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond 200 if this process can take traffic, 503 otherwise."""
    trouble = []
    if _is_leaving:
        trouble.append("leaving")
    elif not await database.is_ok():
        trouble.append("database")
    elif not await migrations.is_ok():
        trouble.append("migrations")
    # Many pages are waiting, so new ones are better off elsewhere.
    trouble += ["connections"] if first_frames.is_full() else []
    await _send(send, 503 if trouble else 200, "not ready" if trouble else "ready", trouble)


def start_draining() -> None:
    """Report not ready from now on, because this process is shutting down."""
    global _is_leaving
    _is_leaving = True


_is_leaving = False


async def _send(send: Callable[..., Any], code: int, status: str, trouble: list[str]) -> None:
    body = {"status": status} | ({"trouble": trouble} if trouble else {})
    await send({"type": "http.response.start", "status": code, "headers": HEADERS})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def layer_latency() -> float | None:
    """Return the channel layer's latency in seconds, or None if it doesn't respond."""
    try:
        return await pubsub.ping()
    except Exception as error:  # each layer has its own exceptions
        logger.info("The channel layer isn't responding: %r", error)
        return None


def free_bytes() -> int:
    """Return the free bytes of the data folder's disk."""
    return shutil.disk_usage(settings.DATA_DIR).free


class _Probe:
    """Runs a check in its own thread, so that a hanging database blocks nothing else.

    One at a time: concurrent callers wait for the same result.
    """

    def __init__(self, check: Callable[[], bool]) -> None:
        self._check = check
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._pending: Future[bool] | None = None

    async def is_ok(self) -> bool:
        if self._pending is None or self._pending.done():
            self._pending = self._thread.submit(self._run_check)
        answered, _ = await asyncio.wait(
            [asyncio.wrap_future(self._pending)], timeout=TIMEOUT_SECONDS
        )
        return any(future.result() for future in answered)

    def _run_check(self) -> bool:
        try:
            return self._check()
        except Error as error:
            logger.info("The database isn't responding: %r", error)
            return False
        finally:
            connection.close()


def _is_readable() -> bool:
    ServerProcess.objects.exists()
    return True


class _MigrationCheck:
    """Whether all migrations are applied; once they are, the result is cached."""

    def __init__(self) -> None:
        self._are_applied = False

    def __call__(self) -> bool:
        if not self._are_applied:
            executor = MigrationExecutor(connection)
            plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
            self._are_applied = not plan
        return self._are_applied


database = _Probe(lambda: _is_readable())
migrations = _Probe(_MigrationCheck())
