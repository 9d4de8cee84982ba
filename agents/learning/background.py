"""Learns from new feedback once a minute, in whichever process is first."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.db.periodic import last_result, periodic
from agents.models import Agent, Experience

from . import extraction, outcomes, style

JOB_NAME = "learning"
# Rows of a transaction that ends late have an earlier time than the pass that missed them.
OVERLAP = timedelta(seconds=10)
# How far back the first pass after an interruption looks.
MAX_PERIOD = timedelta(days=7)
FIRST_PERIOD = timedelta(hours=1)


def is_wanted() -> bool:
    return Agent.objects.filter(learns=True).exists()


@periodic(JOB_NAME, every=60, once=True, when=is_wanted)
def learn(now: datetime | None = None) -> dict[str, Any]:
    """Learn from what was new since the last pass, which can be thousands of runs."""
    now = now or timezone.now()
    until = parse_datetime(last_result(JOB_NAME).get("until", "")) or now - FIRST_PERIOD
    since = max(until, now - MAX_PERIOD)
    saved = extraction.learn(since, now)
    style.learn(since, now)
    if Experience.objects.exists():
        outcomes.count()
    return {"until": (now - OVERLAP).isoformat(), "saved": saved}
