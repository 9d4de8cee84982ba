"""Looks for suggestions once an hour, in whichever process is first."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from agents.db.periodic import PeriodicThread
from agents.models import Upkeep

from . import evidence, store

JOB_NAME = "suggestions"
INTERVAL = timedelta(hours=1)
LOOK_SECONDS = 600.0
FIRST_LOOK_SECONDS = 60.0
WINDOW = timedelta(days=30)


def update_suggestions(now: datetime | None = None) -> int:
    """Look for suggestions unless that was done recently; return how many are open."""
    now = now or timezone.now()
    if not _claim(now):
        return 0
    return store.save(evidence.find(now - WINDOW), now)


def _claim(now: datetime) -> bool:
    Upkeep.objects.get_or_create(name=JOB_NAME)
    is_due = Q(at=None) | Q(at__lte=now - INTERVAL)
    return Upkeep.objects.filter(is_due, name=JOB_NAME).update(at=now) == 1


# It reads many rows.
thread = PeriodicThread("suggestions", update_suggestions, LOOK_SECONDS, FIRST_LOOK_SECONDS)
