"""The periodic job: summarizes runs and adds up days, in one process at a time."""

import logging
import threading
import time
from datetime import datetime, timedelta

from django.db import connections
from django.db.models import Q
from django.utils import timezone

from agents.db import database
from agents.models import Run

from . import catch_up, rollups
from .models import Progress

logger = logging.getLogger(__name__)

POLL_SECONDS = 60.0
INTERVAL = timedelta(minutes=2)


async def run_if_due(run: Run | None) -> None:
    """Catch up every few minutes, in whichever process is first, in its own thread."""
    global _next_look
    if run is not None or time.monotonic() < _next_look:
        return
    _next_look = time.monotonic() + POLL_SECONDS
    if await database.run(_claim_turn, timezone.now()):
        threading.Thread(target=_work, name="dashboard", daemon=True).start()


_next_look = 0.0


def _claim_turn(now: datetime) -> bool:
    Progress.objects.get_or_create(pk=1)
    is_due = Q(run_at=None) | Q(run_at__lt=now - INTERVAL)
    return Progress.objects.filter(is_due, pk=1).update(run_at=now) == 1


def _work() -> None:
    try:
        catch_up.mark_late_events()
        catch_up.catch_up()
        rollups.roll_up_days()
    except Exception:  # it is tried again in a few minutes
        logger.exception("Can't update the dashboard's figures.")
    finally:
        connections.close_all()
