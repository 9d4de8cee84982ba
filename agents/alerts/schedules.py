"""Scheduled summaries: the first process that finds one due sends it, once."""

import logging
from datetime import datetime, timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from . import delivery, summary
from .messages import Message
from .models import SummarySchedule

logger = logging.getLogger(__name__)
Frequency = SummarySchedule.Frequency


def next_time(schedule: SummarySchedule, after: datetime) -> datetime:
    """Return when it is due next, in the installation's time zone."""
    zone = timezone.get_default_timezone()
    day = timezone.localtime(after, zone).date()
    while True:
        # A time that a clock change skips or repeats is moved, but never left out.
        moment = datetime.combine(day, schedule.at).replace(tzinfo=zone)
        if moment > after and _is_day(schedule, moment):
            return moment
        day += timedelta(days=1)


def _is_day(schedule: SummarySchedule, moment: datetime) -> bool:
    if schedule.frequency == Frequency.WEEKLY:
        return moment.weekday() == schedule.weekday
    if schedule.frequency == Frequency.MONTHLY:
        return moment.day == schedule.day
    return True


def send_due(now: datetime | None = None) -> int:
    """Create the summaries that are due; missed ones are made up for once."""
    now = now or timezone.now()
    due = SummarySchedule.objects.filter(Q(next_at=None) | Q(next_at__lte=now), enabled=True)
    count = 0
    for schedule in due:
        try:
            count += _send(schedule, now)
        except Exception:  # others must not wait for a failure
            logger.exception("Can't send the summary %s.", schedule.pk)
    return count


@transaction.atomic
def _send(schedule: SummarySchedule, now: datetime) -> int:
    """Claim the schedule and create its messages; 0 if another process was faster."""
    was_due = schedule.next_at
    same = SummarySchedule.objects.filter(pk=schedule.pk, next_at=was_due)
    changes = {"next_at": next_time(schedule, now)}
    if was_due is not None:
        changes["last_sent_at"] = now
    if not same.update(**changes) or was_due is None:
        return 0
    return send(schedule, was_due)


def send(schedule: SummarySchedule, due: datetime) -> int:
    """Create the messages of a summary; return how many."""
    period = summary.period_before(schedule.frequency, due)
    return sum(
        delivery.enqueue(channel, partial(_build, period, schedule.name, channel.base_url))
        for channel in schedule.channels.filter(enabled=True)
    )


def _build(
    period: summary.SummaryPeriod, name: str, base_url: str, person: User | None
) -> Message:
    """Load and render it for its reader: in their language, with the runs they can see."""
    return summary.build_message(summary.load(period, person), name, base_url)
