"""Status reports of this process every few seconds, for the health page.

A dedicated thread writes them, so that a process with a hanging event loop can report it.
"""

import asyncio
import logging
import resource
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import DurationField, ExpressionWrapper, Value
from django.db.models.functions import Now

from agents.catalog import mcp_servers
from agents.db import row_cache
from agents.models import ServerProcess
from agents.runs import executor, leases

from .loop_watchdog import Watchdog

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
STOP_TIMEOUT_SECONDS = 3.0
STALE_AFTER = timedelta(minutes=10)
STATM_PATH = Path("/proc/self/statm")

_socket_count = 0
_latest: Mapping[str, Any] = {}
_heartbeat: "_Heartbeat | None" = None


def start(kind: str) -> None:
    """Start reporting; called on the event loop that does the work."""
    global _heartbeat
    _heartbeat = _Heartbeat(kind)


async def stop() -> None:
    """Stop reporting, and wait until the process has signed off."""
    global _heartbeat
    heartbeat = _heartbeat
    _heartbeat = None
    if heartbeat is not None:
        heartbeat.watchdog.stop()
        await asyncio.to_thread(heartbeat.stop)


@contextmanager
def count_socket() -> Iterator[None]:
    """Count a socket while it is open."""
    global _socket_count
    _socket_count += 1
    try:
        yield
    finally:
        _socket_count -= 1


def latest() -> Mapping[str, Any]:
    """Return this process's last report; empty if there is none."""
    return _latest


class _Heartbeat:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.watchdog = Watchdog()
        self._is_away = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._report_loop, name="process-status", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(STOP_TIMEOUT_SECONDS)

    def _report_loop(self) -> None:
        while not self._stopped.is_set():
            self._call_safely(report, self.kind, self.watchdog)
            self._stopped.wait(HEARTBEAT_SECONDS)
        self._call_safely(unregister)

    def _call_safely(self, function: Callable[..., None], *arguments: object) -> None:
        """Report; an unavailable database must not end the reports."""
        try:
            function(*arguments)
        except Exception:  # if the reports end, the process counts as dead
            if not self._is_away:
                logger.warning("Can't save the status of this process.", exc_info=True)
            self._is_away = True
        else:
            self._is_away = False
        finally:
            connection.close()


def report(kind: str, watchdog: Watchdog) -> None:
    """Save this process's report, and delete those silent for long."""
    global _latest
    _latest = _collect_figures(watchdog)
    fields = {"kind": kind, "version": version(), "seen_at": Now(), **_latest}
    if not ServerProcess.objects.filter(name=leases.owner()).update(**fields):
        ServerProcess.objects.create(name=leases.owner(), started_at=Now(), **fields)
    cutoff = ExpressionWrapper(
        Now() - Value(STALE_AFTER, output_field=DurationField()),
        output_field=ServerProcess._meta.get_field("seen_at"),
    )
    ServerProcess.objects.filter(seen_at__lt=cutoff).delete()
    row_cache.refresh_all()


def unregister() -> None:
    global _latest
    _latest = {}
    ServerProcess.objects.filter(name=leases.owner()).delete()


def _collect_figures(watchdog: Watchdog) -> dict[str, Any]:
    stalls = watchdog.stalls
    return {
        "runs": executor.active_count(),
        "sockets": _socket_count,
        "memory": memory_bytes(),
        "journal_lag": executor.lag(),
        "lateness": watchdog.lateness,
        "stalls": stalls.count,
        "longest_stall": stalls.longest,
        "stalled_in": stalls.location,
        "stalled_at": stalls.last,
        "mcp_instances": mcp_servers.running_instances(),
    }


def memory_bytes() -> int:
    """Return this process's memory in bytes, or its maximum if unknown."""
    if STATM_PATH.exists():
        return int(STATM_PATH.read_text().split()[1]) * resource.getpagesize()
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@cache
def version() -> str:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    return project["version"]
