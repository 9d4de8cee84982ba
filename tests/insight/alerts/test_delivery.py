"""Sending: signatures, retries, and what is given up."""

import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from agents.insight.alerts import delivery, webhooks
from agents.insight.alerts.errors import DeliveryFailed
from agents.insight.alerts.models import AlertChannel, Delivery, Notification
from agents.tools.egress import Response

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(monkeypatch):
    """A receiver of webhooks that answers with these statuses in turn."""
    requests, statuses = [], []

    async def fetch(method, url, *, policy, headers, content):
        requests.append((url, headers, content))
        status = statuses.pop(0) if statuses else 200
        return Response(status=status, headers={}, content=b"")

    monkeypatch.setattr(webhooks, "fetch", fetch)
    return requests, statuses


@pytest.fixture
def row(webhook):
    about = {"subject": "New problem", "payload": {"type": "problem.new", "text": "東京"}}
    now = timezone.now()
    return Delivery.objects.create(channel=webhook, event="problem.new", next_at=now, **about)


def test_the_receiver_can_verify_the_signature(receiver, row):
    assert delivery.deliver_due() == 1
    [(_url, headers, body)] = receiver[0]
    signed = f"{headers['X-Ashiato-Timestamp']}.".encode() + body
    expected = hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()

    assert headers["X-Ashiato-Signature"] == f"v1={expected}"
    assert headers["X-Ashiato-Delivery"] == str(row.pk)
    assert json.loads(body)["text"] == "東京"


def test_a_failed_delivery_is_tried_again_with_growing_pauses(receiver, row):
    receiver[1][:] = [500, 503, 200]
    now, waits = timezone.now(), []
    for _ in range(3):
        delivery.deliver_due(now)
        row.refresh_from_db()
        waits.append(row.next_at - now)
        now = row.next_at

    assert waits[:2] == [timedelta(minutes=1), timedelta(minutes=5)]
    assert (row.status, row.attempts, row.last_error) == ("sent", 3, "")


def test_it_is_given_up_after_six_attempts(receiver, row):
    receiver[1][:] = [500] * 9
    now = timezone.now()
    for _ in range(9):
        delivery.deliver_due(now)
        now += timedelta(days=1)

    row.refresh_from_db()
    assert (row.status, row.attempts, row.last_error) == ("failed", 6, "HTTP 500")
    assert len(receiver[0]) == 6


def test_a_rejected_request_is_not_repeated(receiver, row):
    receiver[1][:] = [404]
    delivery.deliver_due()

    row.refresh_from_db()
    assert (row.status, row.last_error) == ("failed", "HTTP 404")


def test_a_claimed_delivery_is_not_sent_twice(receiver, row):
    Delivery.objects.update(next_at=timezone.now() + delivery.CLAIM)

    assert delivery._deliver(row, timezone.now()) is False
    assert not receiver[0]


def test_a_claim_lasts_from_when_a_delivery_is_sent(receiver, row, monkeypatch):
    read = row.next_at
    later = read + delivery.CLAIM * 2  # those before it were slow
    monkeypatch.setattr(delivery.timezone, "now", lambda: later)
    monkeypatch.setattr(
        delivery, "send", lambda _row: claims.append(Delivery.objects.get().next_at)
    )
    claims = []

    delivery._deliver(row, read)

    assert claims == [later + delivery.CLAIM]


def test_a_delivery_that_cant_be_sent_at_all_doesnt_hold_up_others(row, monkeypatch):
    def fail(_row):
        raise RuntimeError("broken")

    monkeypatch.setattr(delivery, "send", fail)

    assert delivery.deliver_due(row.next_at) == 0
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("pending", 1)
    assert "Unexpected error" in row.last_error


def test_a_private_address_is_refused(row):
    AlertChannel.objects.update(url="http://127.0.0.1:9/")
    delivery.deliver_due()

    row.refresh_from_db()
    assert row.status == "pending"
    assert "127.0.0.1" in row.last_error


def test_mail_has_plain_text_and_html(row, settings):
    settings.SENDS_EMAIL = True
    AlertChannel.objects.update(kind="email")
    Delivery.objects.update(address="a@example.com", text="Hm.", html="<p>Hm.</p>")
    assert delivery.deliver_due() == 1

    [sent] = mail.outbox
    assert (sent.to, sent.body) == (["a@example.com"], "Hm.")
    assert sent.alternatives[0][0] == "<p>Hm.</p>"


def test_without_a_mail_server_the_log_says_so(row):
    AlertChannel.objects.update(kind="email")

    with pytest.raises(DeliveryFailed, match="ASHIATO_EMAIL_URL"):
        delivery.send(Delivery.objects.select_related("channel").get())


def test_the_log_is_deleted_after_a_month(row, person):
    Notification.objects.create(user=person, event="test")
    Delivery.objects.update(status="sent")
    for days, left in ((29, 1), (31, 0)):
        delivery.delete_old(timezone.now() + timedelta(days=days))
        assert Delivery.objects.count() == Notification.objects.count() == left


def test_the_secret_is_encrypted(webhook, db):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM alerts_alertchannel")
        assert "s3cret" not in cursor.fetchone()[0]


def test_one_pass_sends_more_than_a_batch_and_each_once(receiver, row, monkeypatch):
    monkeypatch.setattr(delivery, "BATCH", 2)
    for _ in range(4):
        row.pk = None
        row.save()
    receiver[1][:] = [500]

    assert delivery.deliver_due() == 4
    assert len(receiver[0]) == 5


def test_a_pass_with_slow_receivers_ends(receiver, row, monkeypatch):
    monkeypatch.setattr(delivery, "BATCH", 1)
    monkeypatch.setattr(delivery, "PASS_SECONDS", -1.0)
    row.pk = None
    row.save()

    assert (delivery.deliver_due(), delivery.deliver_due()) == (1, 1)
