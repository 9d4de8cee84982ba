"""Looks for suggestions once an hour, in whichever process is first."""

import logging
import threading
import time
from datetime import datetime, timedelta

from django.db import connections
from django.db.models import Q
from django.utils import timezone

from agents.models import Run, Upkeep

from . import evidence, store

logger = logging.getLogger(__name__)

JOB_NAME = "suggestions"
INTERVAL = timedelta(hours=1)
LOOK_SECONDS = 60.0
WINDOW = timedelta(days=30)

_next_look = time.monotonic() + LOOK_SECONDS
_is_working = threading.Lock()


async def look_if_due(run: Run | None) -> None:
    """Look at a periodic check, in a thread of its own: it reads many rows."""
    global _next_look
    if run is not None or time.monotonic() < _next_look:
        return
    _next_look = time.monotonic() + LOOK_SECONDS
    if not _is_working.locked():
        threading.Thread(target=_work, name="suggestions", daemon=True).start()


def _work() -> None:
    with _is_working:
        try:
            look(timezone.now())
        except Exception:  # the next check tries again
            logger.exception("Can't look for suggestions.")
        finally:
            connections.close_all()


def look(now: datetime) -> int:
    """Look for suggestions unless that was done recently; return how many are open."""
    if not _claim(now):
        return 0
    return store.save(evidence.find(now - WINDOW), now)


def _claim(now: datetime) -> bool:
    Upkeep.objects.get_or_create(name=JOB_NAME)
    waits = Q(at=None) | Q(at__lte=now - INTERVAL)
    return Upkeep.objects.filter(waits, name=JOB_NAME).update(at=now) == 1
