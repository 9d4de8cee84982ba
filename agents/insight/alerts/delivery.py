"""Deliveries: a row per recipient, claimed by one process, with retries and backoff."""

import logging
import smtplib
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMultiAlternatives
from django.db.models import QuerySet
from django.utils import timezone, translation
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from agents.db import claims
from agents.db.periodic import periodic
from agents.insight.problems.models import Problem
from agents.models import Run
from agents.models.secret import UnreadableSecret

from . import answers, webhooks
from .errors import DeliveryFailed
from .messages import Message, paused_message
from .models import (
    CHANGE_CHANNELS,
    REVIEW_PERMISSION,
    AlertChannel,
    Delivery,
    Event,
    Notification,
)
from .webhooks import Outcome, WebhookRequest

logger = logging.getLogger(__name__)

# Waiting time after each failed attempt; after the last, some 28 hours in all, it is given up.
BACKOFF = [
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
]
# A webhook that has accepted nothing for so long gets nothing more until someone looks at it.
PAUSED_AFTER = timedelta(days=5)
# Longer than sending takes: a claim of a process that died runs out.
CLAIM = timedelta(minutes=2)
BATCH = 20
# Slow receivers must not hold up the announcement of new problems.
PASS_SECONDS = 60.0
KEPT = timedelta(days=30)
MAX_RESPONSES = 20
MESSAGE_SALT = "agents.insight.alerts.delivery"
Kind = AlertChannel.Kind
Status = Delivery.Status

# Builds the message for a person, or for an address or a webhook.
Builder = Callable[[User | None], Message]


def enqueue(
    channel: AlertChannel,
    build: Builder,
    problem: Problem | None = None,
    run: Run | None = None,
    key: str = "",
) -> int:
    """Create what this channel sends, each in its recipient's language; return how many.

    The same key is sent once to each recipient.
    """
    if channel.kind == Kind.NOTIFICATION:
        notifications = []
        for person in _people(channel, problem, run):
            with translation.override(language_of(person)):
                message = build(person)
            same = Notification.objects.filter(user=person, event=message.event, run=run)
            if key and same.exists():
                continue
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
            key=key,
        )
        deliveries.append(delivery)
    Delivery.objects.bulk_create(deliveries, ignore_conflicts=bool(key))
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
    failing: set[int] = set()
    # What was tried isn't due again at `current_time`, so no delivery comes twice.
    while rows := list(due.exclude(channel__in=failing)[:BATCH]):
        sent = _deliver(rows, current_time)
        count += len(sent)
        # The others of a receiver that doesn't answer must not hold up those of the rest.
        failing |= {row.channel_id for row in rows} - {row.channel_id for row in sent}
        if len(rows) < BATCH or time.monotonic() > deadline:
            break
    return count


def _deliver(rows: list[Delivery], current_time: datetime) -> list[Delivery]:
    """Send those deliveries that no other process has; return what was accepted."""
    sent: list[Delivery] = []
    webhook_rows: list[Delivery] = []
    requests: list[WebhookRequest] = []
    for row in rows:
        # From now on, not from when the batch was read: those before it may have taken minutes.
        claimed_until = max(current_time, timezone.now()) + CLAIM
        if not claims.compare_and_set(row, "next_at", claimed_until, attempts=row.attempts + 1):
            continue
        try:
            if row.channel.kind == Kind.WEBHOOK:
                requests.append(build_request(row))
                webhook_rows.append(row)
                continue
            send_mail(row)
        except DeliveryFailed as error:
            _save_failure(row, error, current_time)
        except Exception:  # those behind it must not wait for it
            logger.exception("Can't send delivery %s.", row.pk)
            sentence = _("Unexpected error. Check the server's log.")
            _save_failure(row, DeliveryFailed(sentence), current_time)
        else:
            _save_success(row)
            sent.append(row)
    for row, outcome in zip(webhook_rows, webhooks.send_all(requests), strict=True):
        if save_outcome(row, outcome, current_time):
            sent.append(row)
    return sent


def build_request(row: Delivery) -> WebhookRequest:
    """Return the request of a webhook's delivery; raise DeliveryFailed if it can't be sent."""
    channel = row.channel
    if not channel.enabled:
        raise DeliveryFailed(_("The channel is disabled."), is_passing=False)
    if not channel.url:
        raise DeliveryFailed(_("The channel has no URL."), is_passing=False)
    try:
        secrets = channel.secrets_in_use()
    except UnreadableSecret as error:
        raise DeliveryFailed(str(error)) from error
    if not secrets:
        raise DeliveryFailed(_("The webhook has no signing secret. Make one."))
    payload = row.payload
    if answer := answers.of(row):
        payload = payload | {"data": payload["data"] | {"answer": answer}}
    return WebhookRequest(
        url=channel.url, payload=payload, secrets=secrets, message_id=message_id(row)
    )


def message_id(row: Delivery) -> str:
    """Return the id of a message: the same for each attempt and replay, and nowhere else."""
    return "msg_" + salted_hmac(MESSAGE_SALT, str(row.pk), algorithm="sha256").hexdigest()[:24]


def send_mail(row: Delivery) -> None:
    """Send an email once; raise DeliveryFailed."""
    if not row.channel.enabled:
        raise DeliveryFailed(_("The channel is disabled."), is_passing=False)
    if not settings.SENDS_EMAIL:
        raise DeliveryFailed(_("No mail server is configured (ASHIATO_EMAIL_URL)."))
    text = row.text
    if answer := answers.of(row):
        text = f"{text}\n\n{answer}"
    mail = EmailMultiAlternatives(row.subject, text, to=[row.address])
    if row.html:
        mail.attach_alternative(row.html, "text/html")
    try:
        mail.send()
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise DeliveryFailed(str(error)) from error


def send_test(channel: AlertChannel, message: Message) -> Outcome:
    """Send a webhook's test event now and once, with an entry in the log."""
    now = timezone.now()
    row = Delivery.objects.create(
        channel=channel,
        event=message.event,
        address=channel.host,
        subject=message.subject,
        payload=message.payload(),
        attempts=len(BACKOFF),  # not again, should this process end now
        next_at=now + CLAIM,
    )
    try:
        [outcome] = webhooks.send_all([build_request(row)])
    except DeliveryFailed as error:
        outcome = Outcome(milliseconds=0, problem=str(error))
    log = {"attempts": 1, "responses": [outcome.as_json(now)], "last_error": outcome.error}
    if outcome.is_accepted:
        log |= {"status": Status.SENT, "sent_at": timezone.now()}
    else:
        log["status"] = Status.FAILED
    Delivery.objects.filter(pk=row.pk).update(**log)
    return outcome


def replay(rows: QuerySet[Delivery]) -> int:
    """Send these again, with the ids that they have; return how many."""
    ended = rows.exclude(status=Status.PENDING)
    return ended.update(status=Status.PENDING, attempts=0, next_at=timezone.now())


def save_outcome(row: Delivery, outcome: Outcome, current_time: datetime) -> bool:
    """Save how a webhook's attempt ended; return whether it was accepted."""
    responses = [*row.responses, outcome.as_json(current_time)][-MAX_RESPONSES:]
    if outcome.is_accepted:
        _save_success(row, responses=responses)
        return True
    is_gone = outcome.status == webhooks.GONE
    error = DeliveryFailed(outcome.error, is_passing=not is_gone)
    _save_failure(row, error, current_time, responses=responses)
    failing_since = row.channel.failing_since
    if is_gone or (failing_since and current_time - failing_since > PAUSED_AFTER):
        pause(row.channel, outcome.error)
    return False


def _save_success(row: Delivery, **values: Any) -> None:
    values |= {"status": Status.SENT, "sent_at": timezone.now(), "last_error": ""}
    Delivery.objects.filter(pk=row.pk).update(**values)
    if row.channel.failing_since is not None:
        AlertChannel.objects.filter(pk=row.channel_id).update(failing_since=None)


def _save_failure(
    row: Delivery, error: DeliveryFailed, current_time: datetime, **values: Any
) -> None:
    waits = BACKOFF[row.attempts : row.attempts + 1] if error.is_passing else []
    values |= {"last_error": str(error), "attempts": row.attempts + 1}
    if waits:
        values["next_at"] = current_time + waits[0]
    else:
        values["status"] = Status.FAILED
        logger.warning("Gave up delivery %s of channel %s: %s", row.pk, row.channel_id, error)
    Delivery.objects.filter(pk=row.pk).update(**values)
    AlertChannel.objects.filter(pk=row.channel_id, failing_since=None).update(
        failing_since=current_time
    )


def pause(channel: AlertChannel, reason: str) -> None:
    """Disable a webhook that doesn't accept anything, and notify those who can repair it."""
    now = timezone.now()
    values = {"enabled": False, "paused_at": now, "changed_at": now}
    if not AlertChannel.objects.filter(pk=channel.pk, enabled=True).update(**values):
        return
    people = [channel.owner] if channel.owner else _channel_editors()
    for person in people:
        with translation.override(language_of(person)):
            text = paused_message(channel, reason)
        Notification.objects.create(user=person, event=Event.PAUSED, text=text)


def _channel_editors() -> QuerySet[User]:
    backend = "django.contrib.auth.backends.ModelBackend"
    return User.objects.with_perm(CHANGE_CHANNELS, backend=backend).filter(is_active=True)


@periodic("old deliveries", every=3_600, once=True)
def delete_old(current_time: datetime | None = None) -> None:
    """Delete the log and read notifications after a while."""
    current_time = current_time or timezone.now()
    Delivery.objects.filter(created_at__lt=current_time - KEPT).exclude(
        status=Status.PENDING
    ).delete()
    Notification.objects.filter(created_at__lt=current_time - KEPT).delete()
