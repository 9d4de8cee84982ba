"""Announces, sends and retries in the background: one thread at a time."""

import logging
import threading
import time
from collections.abc import Callable

from django.db import connections
from django.utils import timezone

from agents.models import Run

from . import delivery, rules, schedules

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
CLEAN_SECONDS = 3_600.0

_next_look = 0.0
_next_cleaning = 0.0
_is_working = threading.Lock()


async def work_if_due(run: Run | None) -> None:
    """Start the work at a periodic check. Nothing is added to what a run does."""
    global _next_look
    if run is not None or time.monotonic() < _next_look:
        return
    _next_look = time.monotonic() + INTERVAL_SECONDS
    if not _is_working.locked():
        threading.Thread(target=_work, name="alerts", daemon=True).start()


def _work() -> None:
    global _next_cleaning
    with _is_working:
        try:
            for step in (rules.announce, schedules.send_due, delivery.deliver_due):
                _attempt(step)
            if time.monotonic() >= _next_cleaning:
                _next_cleaning = time.monotonic() + CLEAN_SECONDS
                _attempt(lambda: delivery.delete_old(timezone.now()))
        finally:
            connections.close_all()


def _attempt(step: Callable[[], object]) -> None:
    try:
        step()
    except Exception:  # the next check tries again
        logger.exception("Can't process alerts.")
