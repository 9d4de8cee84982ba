"""The last day of an MCP server: recorded, limited, and described."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from agents.catalog import mcp_servers
from agents.catalog.mcp_servers import health
from agents.console.mcp import uptime_strip
from agents.models import McpServer, ServerSample
from agents.tools.mcp.connection.health import Health
from tests.conftest import as_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server():
    return McpServer.objects.create(name="files", url="https://files.example/mcp")


def look(state, **facts):
    mcp_servers.save_health("files", Health(state=state, **facts))


def later(**time):
    """Make the samples older."""
    for sample in ServerSample.objects.all():
        ServerSample.objects.filter(pk=sample.pk).update(at=sample.at - timedelta(**time))


def saved_samples():
    return list(ServerSample.objects.order_by("at").values_list("is_up", "latency_ms"))


def test_a_health_check_is_saved_with_its_latency(server):
    look("ready", latency=0.012)
    later(minutes=1)
    look("failed", error="gone", latency=0.012)

    assert saved_samples() == [(True, 12.0), (False, None)]


def test_connecting_and_stopped_servers_have_no_samples(server):
    look("connecting")
    look("stopped")

    assert saved_samples() == []


def test_samples_are_throttled_and_changes_saved_at_once(server):
    for _ in range(5):
        look("ready", latency=0.012)
    look("failed")
    look("failed")

    assert [is_up for is_up, _ in saved_samples()] == [True, False]


def test_samples_older_than_a_day_are_deleted(server):
    look("ready")
    later(hours=25)
    look("failed")

    assert [is_up for is_up, _ in saved_samples()] == [False]


def test_the_number_of_samples_is_limited(server, monkeypatch):
    monkeypatch.setattr(health, "MAX_SAMPLES", 4)
    for state in ["ready", "failed"] * 5:
        look(state)

    assert len(saved_samples()) == 4


def test_the_uptime_of_a_day_has_a_text(server):
    now = timezone.now()
    for minutes, is_up in [(300, True), (200, False), (150, True), (10, True)]:
        at = now - timedelta(minutes=minutes)
        server.samples.create(at=at, is_up=is_up, latency_ms=minutes if is_up else None)

    day = uptime_strip.build_strip(server, now)

    assert day.words == (
        "Healthy in 75.0% of 4 checks in the last 24 hours. "
        "Response time: median 150 ms, max 300 ms."
    )
    assert len(day.outages) == 1
    assert [bar.state for bar in day.bars if bar.state != "none"] == ["up", "down", "up", "up"]


def test_a_current_outage_is_described(server):
    server.samples.create(at=timezone.now() - timedelta(minutes=9), is_up=False)

    assert uptime_strip.build_strip(server).outages[0].startswith("since ")
    assert uptime_strip.build_strip(server).words.startswith("Healthy in 0% of 1 check ")


def test_a_server_page_shows_its_uptime_strip(server, administrator):
    client = as_user(administrator)
    address = reverse("admin:agents_mcpserver_change", args=[server.pk])
    before = client.get(address).text
    look("ready", latency=0.012)

    after = client.get(address).text

    assert "No checks in the last 24 hours" in before
    assert 'aria-label="Healthy in 100% of 1 check in the last 24 hours.' in after
    strip = after[after.index("Healthy in 100%") :].partition("</svg>")[0]
    assert strip.count("<rect") == 96
