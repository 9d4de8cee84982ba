"""The pages of alerts and notifications."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from agents.insight.alerts import webhooks
from agents.insight.alerts.models import (
    AlertChannel,
    AlertRule,
    Delivery,
    Notification,
    SummarySchedule,
)
from agents.models import AuditEntry
from agents.tools.egress import Response
from tests.conftest import as_user
from tests.insight.alerts.conftest import SECRET

pytestmark = pytest.mark.django_db
ADD = reverse("admin:alerts_alertchannel_add")


def test_a_webhook_is_added_with_a_secret_that_is_displayed_once(admin_client):
    values = {"name": "Slack", "url": "https://hooks.example.com/a", "events": ["run.finished"]}
    added = admin_client.post(f"{ADD}?kind=webhook", values | {"enabled": "on"})
    channel = AlertChannel.objects.get()
    secret = channel.secret.reveal()
    html = admin_client.get(reverse("admin:alerts_alertchannel_change", args=[channel.pk])).text

    assert (channel.kind, channel.events) == ("webhook", ["run.finished"])
    assert secret.startswith("whsec_")
    assert secret in added.text
    assert added.headers["Cache-Control"].count("no-store") == 1
    assert channel.base_url == "http://testserver/"
    assert secret not in html
    logged = str(AuditEntry.objects.latest("number").detail)
    assert secret not in logged
    assert "hooks.example.com" not in logged


def test_a_secret_is_replaced_and_a_delivery_sent_again(admin_client, webhook):
    from django.utils import timezone

    row = Delivery.objects.create(
        channel=webhook, event="test", subject="A", status="sent", next_at=timezone.now()
    )
    rotated = admin_client.post(
        reverse("admin:alerts_alertchannel_rotate", args=[webhook.pk])
    ).text
    address = reverse("admin:alerts_alertchannel_replay", args=[webhook.pk])
    admin_client.post(address, {"delivery": row.pk})

    webhook.refresh_from_db()
    row.refresh_from_db()
    assert webhook.secret.reveal() in rotated
    assert webhook.previous_secret.reveal() == SECRET
    assert row.status == "pending"
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"webhook.secret_rotated", "webhook.replayed"} <= actions


@pytest.mark.parametrize(
    ("kind", "values", "sentence"),
    [
        ("webhook", {"url": "http://127.0.0.1/"}, "is a private address"),
        ("webhook", {}, "Enter the URL"),
        ("email", {"addresses": "nonsense"}, "nonsense isn&#x27;t an email address."),
        ("email", {}, "Choose at least one recipient."),
        ("notification", {}, "Choose at least one recipient."),
    ],
)
def test_a_wrong_channel_is_not_saved(admin_client, kind, values, sentence):
    answer = admin_client.post(f"{ADD}?kind={kind}", {"name": "A", "enabled": "on", **values})

    assert sentence in answer.text
    assert not AlertChannel.objects.exists()


@pytest.mark.parametrize(("status", "sentence"), [(200, "Test sent"), (500, "HTTP 500")])
def test_a_test_says_whether_it_arrived(admin_client, webhook, monkeypatch, status, sentence):
    async def fetch(*args, **about):
        return Response(status=status, headers={}, content=b"")

    monkeypatch.setattr(webhooks, "fetch", fetch)
    address = reverse("admin:alerts_alertchannel_test", args=[webhook.pk])

    assert sentence in admin_client.post(address, follow=True).text
    row = Delivery.objects.get()
    assert (row.event, row.attempts) == ("test", 1)
    assert row.status == ("sent" if status == 200 else "failed")


def test_a_rule_is_added(admin_client, webhook):
    values = {"name": "New", "event": "problem.new", "channels": [webhook.pk]}
    admin_client.post(reverse("admin:alerts_alertrule_add"), values | {"quiet_minutes": 5})

    assert AlertRule.objects.get().channels.get() == webhook
    assert AuditEntry.objects.filter(action="console.added").exists()


def test_a_summary_has_a_preview_and_can_be_sent_now(admin_client, webhook):
    values = {"name": "Daily", "frequency": "daily", "at": "07:30", "weekday": 0, "day": 1}
    values |= {"channels": [webhook.pk], "enabled": "on"}
    admin_client.post(reverse("admin:alerts_summaryschedule_add"), values)
    row = SummarySchedule.objects.get()
    preview = admin_client.get(
        reverse("admin:alerts_summaryschedule_preview", args=[row.pk])
    ).text
    admin_client.post(reverse("admin:alerts_summaryschedule_send", args=[row.pk]))

    assert row.next_at is not None
    assert "New problems" in preview
    assert Delivery.objects.get().event == "summary"


def test_failed_deliveries_are_sent_again(admin_client, webhook):
    from django.utils import timezone

    row = Delivery.objects.create(
        channel=webhook, event="test", subject="A", status="failed", next_at=timezone.now()
    )
    picked = {"action": "send_again", "_selected_action": [row.pk], "index": 0}
    admin_client.post(reverse("admin:alerts_delivery_changelist"), picked)

    row.refresh_from_db()
    assert row.status == "pending"


# Notifications


def test_notifications_are_listed_and_read(person, problem):
    person.user_permissions.add(Permission.objects.get(codename="view_problem"))
    row = Notification.objects.create(user=person, event="problem.new", problem=problem)
    client = as_user(person)
    html = client.get(reverse("alerts:notifications")).text
    client.get(reverse("alerts:open", args=[row.pk]))

    assert "New problem: City ‹number› is unknown" in html
    row.refresh_from_db()
    assert row.read_at is not None


def test_a_problem_that_a_user_cannot_see_any_more_has_no_title(person, problem):
    Notification.objects.create(user=person, event="problem.new", problem=problem)
    client = as_user(person)

    assert "City" not in client.get(reverse("alerts:notifications")).text


def test_others_notifications_are_not_opened(person, stranger, problem):
    row = Notification.objects.create(user=stranger, event="problem.new", problem=problem)
    client = as_user(person)
    client.get(reverse("alerts:open", args=[row.pk]))
    client.post(reverse("alerts:mark_read"))

    row.refresh_from_db()
    assert row.read_at is None
