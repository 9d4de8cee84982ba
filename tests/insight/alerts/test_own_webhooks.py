"""A user's own webhooks on the account pages."""

import pytest
from django.urls import reverse
from django.utils import timezone

from agents.insight.alerts import webhook_pages, webhooks
from agents.insight.alerts.models import AlertChannel, AlertRule, Delivery
from agents.models import AuditEntry
from agents.tools.egress import Response
from tests.conftest import as_user
from tests.insight.alerts.conftest import SECRET

pytestmark = pytest.mark.django_db
VALUES = {
    "description": "CI",
    "url": "https://hooks.example.com/ci",
    "events": ["run.finished"],
    "enabled": "on",
}


@pytest.fixture
def own(person):
    return AlertChannel.objects.create(
        name=None, kind="webhook", owner=person, description="CI", events=["run.finished"],
        url=VALUES["url"], secret=SECRET,
    )  # fmt: skip


def test_a_webhook_is_made_and_its_secret_displayed_once(person, person_client):
    made = person_client.post(reverse("alerts:new_webhook"), VALUES)
    channel = AlertChannel.objects.get()
    secret = channel.secret.reveal()

    assert secret in made.text
    assert "no-store" in made.headers["Cache-Control"]
    assert (channel.owner, channel.name, str(channel)) == (person, None, "CI")
    for address in ("alerts:webhooks", "alerts:webhook"):
        arguments = [channel.pk] if address == "alerts:webhook" else []
        assert secret not in person_client.get(reverse(address, args=arguments)).text
    assert secret not in str(list(AuditEntry.objects.values_list("detail", flat=True)))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"url": "http://10.0.0.1/"}, "is a private address"),
        ({"url": "ftp://a.example.com/"}, "must start with http"),
        ({"events": []}, "Choose at least one event."),
        ({"events": ["problem.opened"]}, "Select a valid choice"),
        ({"description": ""}, "required"),
    ],
)
def test_a_wrong_webhook_is_not_saved(person_client, values, sentence):
    answer = person_client.post(reverse("alerts:new_webhook"), VALUES | values)

    assert answer.status_code == 422
    assert sentence in answer.text
    assert not AlertChannel.objects.exists()


def test_there_is_a_limit(own, person, person_client, monkeypatch):
    monkeypatch.setattr(webhook_pages, "MAX_WEBHOOKS", 1)
    person_client.post(reverse("alerts:new_webhook"), VALUES)

    assert AlertChannel.objects.count() == 1


def test_a_paused_webhook_is_enabled_again(own, person_client):
    now = timezone.now()
    AlertChannel.objects.update(enabled=False, paused_at=now, failing_since=now)
    address = reverse("alerts:webhook", args=[own.pk])
    assert "Paused" in person_client.get(address).text
    person_client.post(address, VALUES)

    own.refresh_from_db()
    assert (own.enabled, own.paused_at, own.failing_since) == (True, None, None)


def test_a_test_event_is_in_the_log_and_can_be_replayed(own, person_client, monkeypatch):
    async def fetch(*_args, **_options):
        return Response(status=202, headers={}, content=b"<b>thanks</b>\0")

    monkeypatch.setattr(webhooks, "fetch", fetch)
    page = person_client.post(reverse("alerts:test", args=[own.pk]), follow=True).text
    row = Delivery.objects.get()
    assert "HTTP 202" in page
    assert "&lt;b&gt;thanks&lt;/b&gt;" in page
    person_client.post(reverse("alerts:replay", args=[own.pk, row.pk]))

    row.refresh_from_db()
    assert (row.status, row.attempts) == ("pending", 0)


def test_others_cant_see_or_change_it(own, stranger, administrator, admin_client):
    client = as_user(stranger)
    delivery = Delivery.objects.create(
        channel=own, event="test", subject="A", status="sent", next_at=timezone.now()
    )
    assert client.get(reverse("alerts:webhook", args=[own.pk])).status_code == 404
    for name in ("rotate", "test", "delete"):
        assert client.post(reverse(f"alerts:{name}", args=[own.pk])).status_code == 404
    replay = reverse("alerts:replay", args=[own.pk, delivery.pk])
    assert client.post(replay).status_code == 404
    change = reverse("admin:alerts_alertchannel_change", args=[own.pk])
    assert admin_client.get(change).status_code == 302
    assert "CI" not in admin_client.get(reverse("admin:alerts_alertrule_add")).text
    assert not Delivery.objects.for_user(administrator).exists()


def test_a_rule_cant_use_it(own, admin_client):
    values = {"name": "New", "event": "problem.new", "channels": [own.pk], "quiet_minutes": 5}
    admin_client.post(reverse("admin:alerts_alertrule_add"), values)

    assert not AlertRule.objects.exists()


def test_it_is_deleted_with_its_log(own, person_client):
    person_client.post(reverse("alerts:delete", args=[own.pk]))

    assert not AlertChannel.objects.exists()
    assert AuditEntry.objects.filter(action="console.deleted").exists()


def test_an_administrator_can_turn_them_off(configure, person_client):
    configure(personal_api_keys=False)

    assert person_client.get(reverse("alerts:new_webhook")).status_code == 404
    assert "turned off" in person_client.get(reverse("alerts:webhooks")).text
