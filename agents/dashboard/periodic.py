"""The periodic job: summarizes runs and adds up days, in one process at a time."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from agents.db.periodic import Interval, PeriodicThread

from . import catch_up, rollups
from .models import Progress

POLL_SECONDS = 60.0
INTERVAL = timedelta(minutes=2)
# So many are summarized before days are added up: well within an interval.
MAX_RUNS = 2_000
_orphans = Interval(3600.0)


def _claim_turn(now: datetime) -> bool:
    Progress.objects.get_or_create(pk=1)
    is_due = Q(run_at=None) | Q(run_at__lt=now - INTERVAL)
    return Progress.objects.filter(is_due, pk=1).update(run_at=now) == 1


def _work() -> None:
    if _claim_turn(timezone.now()):
        catch_up.mark_late_events()
        catch_up.catch_up(MAX_RUNS)
        rollups.mark_days_without_models()
        rollups.roll_up_days()
        if _orphans.is_due():
            catch_up.delete_orphans()


thread = PeriodicThread("dashboard", _work, POLL_SECONDS)
