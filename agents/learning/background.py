"""Learns from new feedback once a minute, in whichever process is first."""

import logging
import threading
import time
from datetime import datetime, timedelta

from django.db import connections
from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.models import Agent, Experience, Run, Upkeep

from . import extraction, outcomes, style

logger = logging.getLogger(__name__)

JOB_NAME = "learning"
INTERVAL = timedelta(minutes=1)
# Rows of a transaction that ends late have an earlier time than the pass that missed them.
OVERLAP = timedelta(seconds=10)
# How far back the first pass after an interruption looks.
MAX_PERIOD = timedelta(days=7)
FIRST_PERIOD = timedelta(hours=1)

_next_look = 0.0
_is_working = threading.Lock()


async def run_if_due(run: Run | None) -> None:
    """Learn at a periodic check, in a thread of its own: a pass can read thousands of runs."""
    global _next_look
    if run is not None or time.monotonic() < _next_look:
        return
    _next_look = time.monotonic() + INTERVAL.total_seconds()
    if not _is_working.locked():
        threading.Thread(target=_work, name="learning", daemon=True).start()


def _work() -> None:
    with _is_working:
        try:
            work()
        except Exception:  # the next check tries again
            logger.exception("Can't learn from feedback.")
        finally:
            connections.close_all()


def work(now: datetime | None = None) -> int:
    """Learn from what was new since the last pass; return how many experiences it taught."""
    now = now or timezone.now()
    if not Agent.objects.filter(learns=True).exists() or not _claim(now):
        return 0
    since = _since(now)
    saved = extraction.learn(since, now)
    style.learn(since, now)
    if Experience.objects.exists():
        outcomes.count()
    report = {"until": (now - OVERLAP).isoformat(), "saved": saved}
    Upkeep.objects.filter(name=JOB_NAME).update(report=report)
    return saved


def _claim(now: datetime) -> bool:
    Upkeep.objects.get_or_create(name=JOB_NAME)
    waits = Q(at=None) | Q(at__lte=now - INTERVAL)
    return Upkeep.objects.filter(waits, name=JOB_NAME).update(at=now) == 1


def _since(now: datetime) -> datetime:
    report = Upkeep.objects.get(name=JOB_NAME).report
    until = parse_datetime(report.get("until", "")) or now - FIRST_PERIOD
    return max(until, now - MAX_PERIOD)
