"""Deliveries: a row per recipient, claimed by one process, with retries and backoff."""

import logging
import smtplib
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMultiAlternatives
from django.db.models import QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from agents.db import claims
from agents.db.periodic import periodic
from agents.insight.problems.models import Problem
from agents.models import Run
from agents.models.secret import UnreadableSecret

from . import webhooks
from .errors import DeliveryFailed
from .messages import Message
from .models import REVIEW_PERMISSION, AlertChannel, Delivery, Notification

logger = logging.getLogger(__name__)

# Waiting time after each failed attempt; after the last it is given up.
BACKOFF = [timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 360)]
# Longer than sending takes: a claim of a process that died runs out.
CLAIM = timedelta(minutes=2)
BATCH = 20
# Slow receivers must not hold up the announcement of new problems.
PASS_SECONDS = 60.0
KEPT = timedelta(days=30)
Kind = AlertChannel.Kind
Status = Delivery.Status

# Builds the message for a person, or for an address or a webhook.
Builder = Callable[[User | None], Message]


def enqueue(
    channel: AlertChannel,
    build: Builder,
    problem: Problem | None = None,
    run: Run | None = None,
) -> int:
    """Create what this channel sends, each in its recipient's language; return how many."""
    if channel.kind == Kind.NOTIFICATION:
        notifications = []
        for person in _people(channel, problem, run):
            with translation.override(language_of(person)):
                message = build(person)
            notification = Notification(
                user=person,
                event=message.event,
                problem=problem,
                run=run,
                text="" if problem else message.text,
            )
            notifications.append(notification)
        Notification.objects.bulk_create(notifications)
        return len(notifications)
    is_webhook = channel.kind == Kind.WEBHOOK
    recipients: list[tuple[User | None, str]] = []
    if is_webhook:
        recipients = [(None, channel.host)]
    else:
        people = _people(channel, problem, run)
        recipients = [(person, person.email) for person in people if person.email]
        recipients += [(None, address) for address in channel.address_list]
    deliveries = []
    for recipient, address in recipients:
        with translation.override(language_of(recipient)):
            message = build(recipient)
        delivery = Delivery(
            channel=channel,
            event=message.event,
            problem=problem,
            person=recipient,
            address=address,
            subject=message.subject,
            text="" if is_webhook else message.text,
            html="" if is_webhook else message.html,
            payload=message.payload() if is_webhook else {},
            next_at=timezone.now(),
        )
        deliveries.append(delivery)
    Delivery.objects.bulk_create(deliveries)
    return len(deliveries)


def _people(channel: AlertChannel, problem: Problem | None, run: Run | None) -> Iterator[User]:
    """Yield the channel's people who can see what it is about."""
    for person in channel.people.filter(is_active=True).select_related("profile"):
        if run is not None:
            may_see = Run.objects.for_user(person).filter(pk=run.pk).exists()
        elif problem is None:
            may_see = person.has_perm(REVIEW_PERMISSION)
        else:
            may_see = Problem.objects.for_user(person).filter(pk=problem.pk).exists()
        if may_see:
            yield person


def language_of(person: User | None) -> str:
    """Return a recipient's language; the installation's for addresses and webhooks."""
    profile = getattr(person, "profile", None)
    return (profile.language if profile else "") or settings.LANGUAGE_CODE


def has_due() -> bool:
    return _due(timezone.now()).exists()


def _due(current_time: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(status=Status.PENDING, next_at__lte=current_time)


@periodic("deliveries", every=10, once=True, when=has_due)
def deliver_due(current_time: datetime | None = None) -> int:
    """Send what is due; return how many were sent."""
    current_time = current_time or timezone.now()
    due = _due(current_time).select_related("channel").order_by("next_at")
    deadline = time.monotonic() + PASS_SECONDS
    count = 0
    # What was tried isn't due again at `current_time`, so no delivery comes twice.
    while rows := list(due[:BATCH]):
        count += sum(_deliver(row, current_time) for row in rows)
        if len(rows) < BATCH or time.monotonic() > deadline:
            break
    return count


def _deliver(row: Delivery, current_time: datetime) -> bool:
    """Send a delivery, unless another process has it."""
    # From now on, not from when the batch was read: those before it may have taken minutes.
    claimed_until = max(current_time, timezone.now()) + CLAIM
    if not claims.compare_and_set(row, "next_at", claimed_until, attempts=row.attempts + 1):
        return False
    try:
        send(row)
    except DeliveryFailed as error:
        _save_failure(row, error, current_time)
        return False
    except Exception:  # those behind it must not wait for it
        logger.exception("Can't send delivery %s.", row.pk)
        _save_failure(
            row, DeliveryFailed(_("Unexpected error. Check the server's log.")), current_time
        )
        return False
    Delivery.objects.filter(pk=row.pk).update(
        status=Status.SENT, sent_at=timezone.now(), last_error=""
    )
    return True


def send(row: Delivery) -> None:
    """Send it once; raise DeliveryFailed."""
    if not row.channel.enabled:
        raise DeliveryFailed(_("The channel is disabled."), is_passing=False)
    if row.channel.kind == Kind.WEBHOOK:
        if not row.channel.url:
            raise DeliveryFailed(_("The channel has no URL."), is_passing=False)
        try:
            secret = str(row.channel.secret.reveal())
        except UnreadableSecret as error:
            raise DeliveryFailed(str(error)) from error
        webhooks.post(row.channel.url, row.payload, secret, str(row.pk or "test"))
        return
    if not settings.SENDS_EMAIL:
        raise DeliveryFailed(_("No mail server is configured (ASHIATO_EMAIL_URL)."))
    mail = EmailMultiAlternatives(row.subject, row.text, to=[row.address])
    if row.html:
        mail.attach_alternative(row.html, "text/html")
    try:
        mail.send()
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise DeliveryFailed(str(error)) from error


def _save_failure(row: Delivery, error: DeliveryFailed, current_time: datetime) -> None:
    waits = BACKOFF[row.attempts : row.attempts + 1] if error.is_passing else []
    changes = {"last_error": str(error), "attempts": row.attempts + 1}
    if waits:
        Delivery.objects.filter(pk=row.pk).update(next_at=current_time + waits[0], **changes)
        return
    logger.warning("Gave up delivery %s of channel %s: %s", row.pk, row.channel_id, error)
    Delivery.objects.filter(pk=row.pk).update(status=Status.FAILED, **changes)


@periodic("old deliveries", every=3_600, once=True)
def delete_old(current_time: datetime | None = None) -> None:
    """Delete the log and read notifications after a while."""
    current_time = current_time or timezone.now()
    Delivery.objects.filter(created_at__lt=current_time - KEPT).exclude(
        status=Status.PENDING
    ).delete()
    Notification.objects.filter(created_at__lt=current_time - KEPT).delete()
