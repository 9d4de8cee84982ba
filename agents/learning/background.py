"""Learns from new feedback once a minute, in whichever process is first."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.db.periodic import PeriodicThread
from agents.models import Agent, Experience, Upkeep

from . import extraction, outcomes, style

JOB_NAME = "learning"
INTERVAL = timedelta(minutes=1)
# Rows of a transaction that ends late have an earlier time than the pass that missed them.
OVERLAP = timedelta(seconds=10)
# How far back the first pass after an interruption looks.
MAX_PERIOD = timedelta(days=7)
FIRST_PERIOD = timedelta(hours=1)


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
    is_due = Q(at=None) | Q(at__lte=now - INTERVAL)
    return Upkeep.objects.filter(is_due, name=JOB_NAME).update(at=now) == 1


def _since(now: datetime) -> datetime:
    report = Upkeep.objects.get(name=JOB_NAME).report
    until = parse_datetime(report.get("until", "")) or now - FIRST_PERIOD
    return max(until, now - MAX_PERIOD)


# A pass can read thousands of runs.
thread = PeriodicThread("learning", work, INTERVAL.total_seconds())
