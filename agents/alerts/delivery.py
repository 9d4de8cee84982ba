"""Deliveries: a row per recipient, claimed by one process, with retries and backoff."""

import logging
import smtplib
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMultiAlternatives
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from agents.models import Run
from agents.models.secret import UnreadableSecret
from agents.problems.models import Problem

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
Kind, Status = AlertChannel.Kind, Delivery.Status

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
        return _notify(channel, build, problem, run)
    rows = [
        _delivery(channel, build, problem, person, address)
        for person, address in _recipients(channel, problem, run)
    ]
    Delivery.objects.bulk_create(rows)
    return len(rows)


def _notify(
    channel: AlertChannel, build: Builder, problem: Problem | None, run: Run | None
) -> int:
    rows = []
    for person in _people(channel, problem, run):
        with translation.override(language_of(person)):
            message = build(person)
        text = "" if problem else message.text
        rows.append(
            Notification(user=person, event=message.event, problem=problem, run=run, text=text)
        )
    Notification.objects.bulk_create(rows)
    return len(rows)


def _recipients(
    channel: AlertChannel, problem: Problem | None, run: Run | None
) -> Iterator[tuple[User | None, str]]:
    if channel.kind == Kind.WEBHOOK:
        yield None, channel.host
        return
    for person in _people(channel, problem, run):
        if person.email:
            yield person, person.email
    for address in channel.address_list:
        yield None, address


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


def _delivery(
    channel: AlertChannel,
    build: Builder,
    problem: Problem | None,
    person: User | None,
    address: str,
) -> Delivery:
    with translation.override(language_of(person)):
        message = build(person)
    is_webhook = channel.kind == Kind.WEBHOOK
    return Delivery(
        channel=channel,
        event=message.event,
        problem=problem,
        person=person,
        address=address,
        subject=message.subject,
        text="" if is_webhook else message.text,
        html="" if is_webhook else message.html,
        payload=message.payload() if is_webhook else {},
        next_at=timezone.now(),
    )


def language_of(person: User | None) -> str:
    """Return a recipient's language; the installation's for addresses and webhooks."""
    profile = getattr(person, "profile", None)
    return (profile.language if profile else "") or settings.LANGUAGE_CODE


def deliver_due(now: datetime | None = None) -> int:
    """Send what is due; return how many were sent."""
    now = now or timezone.now()
    due = Delivery.objects.filter(status=Status.PENDING, next_at__lte=now)
    due = due.select_related("channel").order_by("next_at")
    deadline = time.monotonic() + PASS_SECONDS
    count = 0
    # What was tried isn't due again at this `now`, so no delivery comes twice.
    while rows := list(due[:BATCH]):
        count += sum(_deliver(row, now) for row in rows)
        if len(rows) < BATCH or time.monotonic() > deadline:
            break
    return count


def _deliver(row: Delivery, now: datetime) -> bool:
    """Send a delivery, unless another process has it."""
    # From now on, not from when the batch was read: those before it may have taken minutes.
    claimed_until = max(now, timezone.now()) + CLAIM
    unclaimed = Delivery.objects.filter(pk=row.pk, status=Status.PENDING, next_at=row.next_at)
    if not unclaimed.update(next_at=claimed_until, attempts=row.attempts + 1):
        return False
    try:
        send(row)
    except DeliveryFailed as error:
        _save_failure(row, error, now)
        return False
    except Exception:  # those behind it must not wait for it
        logger.exception("Can't send delivery %s.", row.pk)
        _save_failure(row, DeliveryFailed(_("Unexpected error; see the log.")), now)
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
    else:
        _send_email(row)


def _send_email(row: Delivery) -> None:
    if not settings.SENDS_EMAIL:
        raise DeliveryFailed(_("No mail server is configured (ASHIATO_EMAIL_URL)."))
    mail = EmailMultiAlternatives(row.subject, row.text, to=[row.address])
    if row.html:
        mail.attach_alternative(row.html, "text/html")
    try:
        mail.send()
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise DeliveryFailed(str(error)) from error


def _save_failure(row: Delivery, error: DeliveryFailed, now: datetime) -> None:
    waits = BACKOFF[row.attempts : row.attempts + 1] if error.is_passing else []
    changes = {"last_error": str(error), "attempts": row.attempts + 1}
    if waits:
        Delivery.objects.filter(pk=row.pk).update(next_at=now + waits[0], **changes)
        return
    logger.warning("Gave up delivery %s of channel %s: %s", row.pk, row.channel_id, error)
    Delivery.objects.filter(pk=row.pk).update(status=Status.FAILED, **changes)


def delete_old(now: datetime) -> None:
    """Delete the log and read notifications after a while."""
    Delivery.objects.filter(created_at__lt=now - KEPT).exclude(status=Status.PENDING).delete()
    Notification.objects.filter(created_at__lt=now - KEPT).delete()
