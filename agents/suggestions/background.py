"""Looks for suggestions once an hour, in whichever process is first."""

from datetime import datetime, timedelta

from django.utils import timezone

from agents.db.periodic import periodic

from . import evidence, store

JOB_NAME = "suggestions"
EVIDENCE_PERIOD = timedelta(days=30)


@periodic(JOB_NAME, every=3_600, delay=60, once=True)
def update_suggestions(now: datetime | None = None) -> int:
    """Look for suggestions in many runs; return how many are open."""
    now = now or timezone.now()
    return store.save(evidence.find(now - EVIDENCE_PERIOD), now)
