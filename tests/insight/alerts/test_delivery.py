"""Sending: signatures, retries, and what is given up."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone
from standardwebhooks import Webhook

from agents.insight.alerts import delivery, webhooks
from agents.insight.alerts.errors import DeliveryFailed
from agents.insight.alerts.models import AlertChannel, Delivery, Notification
from agents.tools.egress import Response
from tests.insight.alerts.conftest import SECRET

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

    assert Webhook(SECRET).verify(body, headers)["text"] == "東京"
    assert headers["webhook-id"] == delivery.message_id(row)


def test_both_secrets_sign_until_the_previous_one_expires(receiver, webhook, row):
    new = webhook.new_secret()
    webhook.save()
    delivery.deliver_due()
    [(_url, headers, body)] = receiver[0]

    for secret in (SECRET, new):
        Webhook(secret).verify(body, headers)
    AlertChannel.objects.update(previous_until=timezone.now() - timedelta(seconds=1))
    assert AlertChannel.objects.get().secrets_in_use() == [new]


def test_a_failed_delivery_is_tried_again_with_growing_pauses(receiver, row):
    receiver[1][:] = [500, 503, 200]
    now, waits = timezone.now(), []
    for _ in range(3):
        delivery.deliver_due(now)
        row.refresh_from_db()
        waits.append(row.next_at - now)
        now = row.next_at

    assert waits[:2] == [timedelta(seconds=5), timedelta(minutes=5)]
    assert (row.status, row.attempts, row.last_error) == ("sent", 3, "")
    assert [attempt["status"] for attempt in row.responses] == [500, 503, 200]
    ids = {headers["webhook-id"] for _url, headers, _body in receiver[0]}
    assert len(ids) == 1


def test_it_is_given_up_after_eight_attempts_in_a_good_day(receiver, row):
    receiver[1][:] = [500] * 12
    now = timezone.now()
    for _ in range(12):
        delivery.deliver_due(now)
        now += timedelta(days=0.4)

    row.refresh_from_db()
    assert (row.status, row.attempts, row.last_error) == ("failed", 8, "HTTP 500")
    assert len(receiver[0]) == 8
    assert timedelta(hours=24) < sum(delivery.BACKOFF, timedelta()) < timedelta(hours=30)


def test_a_webhook_that_fails_for_days_is_paused_and_its_owner_notified(
    receiver, webhook, row, administrator
):
    receiver[1][:] = [500] * 9
    now = timezone.now()
    delivery.deliver_due(now)
    assert AlertChannel.objects.get().failing_since == now
    delivery.deliver_due(now + timedelta(days=6))

    webhook.refresh_from_db()
    assert not webhook.enabled
    assert webhook.paused_at is not None
    notification = Notification.objects.get(user=administrator)
    assert notification.event == "webhook.paused"
    assert "Slack" in notification.text


def test_a_success_ends_the_failure(receiver, webhook, row):
    receiver[1][:] = [500, 200]
    now = timezone.now()
    delivery.deliver_due(now)
    delivery.deliver_due(now + timedelta(hours=1))

    assert AlertChannel.objects.get().failing_since is None


def test_a_receiver_that_is_gone_is_paused_at_once(receiver, webhook, row):
    receiver[1][:] = [410]
    delivery.deliver_due()

    row.refresh_from_db()
    assert (row.status, row.last_error) == ("failed", "HTTP 410")
    assert AlertChannel.objects.get().paused_at is not None


def test_a_claimed_delivery_is_not_sent_twice(receiver, row):
    Delivery.objects.update(next_at=timezone.now() + delivery.CLAIM)

    assert delivery._deliver([row], timezone.now()) == []
    assert not receiver[0]


def test_a_delivery_whose_process_died_is_sent_when_its_claim_ends(receiver, row, monkeypatch):
    class Killed(BaseException):
        pass

    def die(_requests):
        raise Killed

    with monkeypatch.context() as killed:
        killed.setattr(webhooks, "send_all", die)
        with pytest.raises(Killed):
            delivery.deliver_due(row.next_at)

    assert delivery.deliver_due(row.next_at) == 0
    assert delivery.deliver_due(timezone.now() + 2 * delivery.CLAIM) == 1
    assert len(receiver[0]) == 1


def test_a_dead_receiver_doesnt_hold_up_others(receiver, row, webhook, monkeypatch):
    monkeypatch.setattr(delivery, "BATCH", 1)
    other = AlertChannel.objects.create(
        name="Other", kind="webhook", url="https://other.example.com/", secret=SECRET
    )
    for channel in (webhook, webhook, other):
        row.pk = None
        row.channel = channel
        row.save()
    receiver[1][:] = [500]

    assert delivery.deliver_due() == 1
    assert [url for url, _headers, _body in receiver[0]] == [webhook.url, other.url]


def test_a_replay_has_the_same_id(receiver, row):
    delivery.deliver_due()
    assert delivery.replay(Delivery.objects.all()) == 1
    delivery.deliver_due()

    first, second = (headers["webhook-id"] for _url, headers, _body in receiver[0])
    assert first == second


def test_a_claim_lasts_from_when_a_delivery_is_sent(receiver, row, monkeypatch):
    read = row.next_at
    later = read + delivery.CLAIM * 2  # those before it were slow
    monkeypatch.setattr(delivery.timezone, "now", lambda: later)
    monkeypatch.setattr(
        delivery, "send_mail", lambda _row: claims.append(Delivery.objects.get().next_at)
    )
    AlertChannel.objects.update(kind="email")
    row.channel.refresh_from_db()
    claims = []

    delivery._deliver([row], read)

    assert claims == [later + delivery.CLAIM]


def test_a_delivery_that_cant_be_sent_at_all_doesnt_hold_up_others(row, monkeypatch):
    def fail(_row):
        raise RuntimeError("broken")

    monkeypatch.setattr(delivery, "build_request", fail)

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
        delivery.send_mail(Delivery.objects.select_related("channel").get())


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
        assert SECRET not in cursor.fetchone()[0]


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
