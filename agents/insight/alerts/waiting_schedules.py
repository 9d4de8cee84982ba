"""Tells the owner of a schedule or trigger, and the alert rules, that its run waits."""

from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import translation

from agents.db import database
from agents.models import Run, Schedule, Trigger
from agents.web.workflows import automatic

from . import delivery
from .messages import Message, schedule_message
from .models import AlertChannel, AlertRule, Event, Notification


async def announce(run: Run) -> None:
    """Announce a run of a schedule or trigger as soon as it pauses."""
    if automatic.is_automatic(run.topic):
        await database.run(announce_waiting, run.pk)


@transaction.atomic
def announce_waiting(pk: int) -> None:
    run = Run.objects.waiting().select_related("user__profile").filter(pk=pk).first()
    if run is None or run.user is None:
        return
    origin = automatic.origin_of(run.topic)
    if origin is None:
        return
    with translation.override(delivery.language_of(run.user)):
        message = schedule_message(run, origin, "")
    Notification.objects.create(user=run.user, event=message.event, run=run, text=message.text)
    concerned = Q(agents=None) | Q(agents=run.agent_id)
    rules = AlertRule.objects.filter(concerned, enabled=True, event=Event.SCHEDULE_WAITING)
    channels = AlertChannel.objects.filter(rules__in=rules, enabled=True).distinct()
    for channel in channels:
        delivery.enqueue(channel, partial(_build, run, origin, channel), run=run)


def _build(
    run: Run, origin: Schedule | Trigger, channel: AlertChannel, person: User | None
) -> Message:
    is_notification = channel.kind == AlertChannel.Kind.NOTIFICATION
    return schedule_message(run, origin, "" if is_notification else channel.base_url)
