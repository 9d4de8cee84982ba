"""Scheduled summaries: the first process that finds one due sends it, once."""

import logging
from datetime import datetime, timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.db import claims
from agents.db.periodic import periodic

from . import delivery, summary
from .messages import Message
from .models import SummarySchedule

logger = logging.getLogger(__name__)
Frequency = SummarySchedule.Frequency


def next_time(schedule: SummarySchedule, since: datetime) -> datetime:
    """Return when it is due next, in the installation's time zone."""
    zone = timezone.get_default_timezone()
    day = timezone.localtime(since, zone).date()
    while True:
        # A time that a clock change skips or repeats is moved, but never left out.
        moment = datetime.combine(day, schedule.at).replace(tzinfo=zone)
        is_day = True
        if schedule.frequency == Frequency.WEEKLY:
            is_day = moment.weekday() == schedule.weekday
        elif schedule.frequency == Frequency.MONTHLY:
            is_day = moment.day == schedule.day
        if is_day and moment > since:
            return moment
        day += timedelta(days=1)


@periodic("scheduled summaries", every=60, delay=20, once=True)
def send_due(current_time: datetime | None = None) -> int:
    """Create the summaries that are due; missed ones are made up for once."""
    current_time = current_time or timezone.now()
    due = SummarySchedule.objects.filter(
        Q(next_at=None) | Q(next_at__lte=current_time), enabled=True
    )
    count = 0
    for schedule in due:
        try:
            count += _send(schedule, current_time)
        except Exception:  # others must not wait for a failure
            logger.exception("Can't send the summary %s.", schedule.pk)
    return count


@transaction.atomic
def _send(schedule: SummarySchedule, current_time: datetime) -> int:
    """Claim the schedule and create its messages; 0 if another process was faster."""
    was_due = schedule.next_at
    upcoming = next_time(schedule, current_time)
    if was_due is None:
        claims.compare_and_set(schedule, "next_at", upcoming)
        return 0
    if not claims.compare_and_set(schedule, "next_at", upcoming, last_sent_at=current_time):
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
