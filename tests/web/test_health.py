"""Health probes of a process."""

import asyncio
import json
import threading

import pytest
from channels.layers import get_channel_layer
from channels.testing import HttpCommunicator
from django.db import OperationalError

from agents.models import ServerProcess
from agents.runs import pubsub
from agents.web.asgi import health
from project.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)


async def get_health(host=b"testserver", path="/health/"):
    request = HttpCommunicator(application, "GET", path, headers=[(b"host", host)])
    response = await request.get_response(timeout=10)
    return response["status"], json.loads(response["body"])


async def test_a_working_process_is_healthy():
    assert await get_health() == (200, {"status": "ok"})


async def test_a_load_balancer_needs_no_host_name_and_no_password():
    assert (await get_health(host=b"10.0.0.7:8000"))[0] == 200


async def test_a_failing_database_is_reported_as_one_word(monkeypatch):
    def exists():
        raise OperationalError("password of ada is wrong")

    monkeypatch.setattr(ServerProcess.objects, "exists", exists)

    assert await get_health() == (503, {"status": "down", "trouble": ["database"]})


async def test_a_hanging_database_does_not_block_the_health_check(monkeypatch):
    let_go, asks = threading.Event(), []
    monkeypatch.setattr(health, "TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(health, "_is_readable", lambda: asks.append(1) or let_go.wait(30))

    async with asyncio.timeout(10):
        answers = await asyncio.gather(*[get_health() for _ in range(20)])
    let_go.set()

    assert {status for status, _ in answers} == {503}
    assert len(asks) == 1


async def test_health_recovers_with_the_database(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(health, "_is_readable", lambda: False)
        assert (await get_health())[0] == 503

    assert (await get_health())[0] == 200


async def test_an_unreachable_channel_layer_is_degraded_but_ready(monkeypatch):
    async def receive(channel):
        await asyncio.sleep(60)

    monkeypatch.setattr(pubsub, "PING_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(get_channel_layer(), "receive", receive)

    assert await get_health() == (200, {"status": "degraded", "trouble": ["layer"]})


async def test_a_nearly_full_disk_is_reported(monkeypatch):
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 10**18)

    assert await get_health() == (200, {"status": "degraded", "trouble": ["disk"]})


async def test_a_health_check_leaves_no_channel_behind():
    layer = get_channel_layer()
    before = set(layer.channels)

    for _ in range(5):
        await pubsub.ping()

    assert set(layer.channels) == before


async def test_liveness_does_not_depend_on_the_database(monkeypatch):
    monkeypatch.setattr(health, "_is_readable", lambda: False)

    assert await get_health(path="/healthz") == (200, {"status": "alive"})


async def test_a_process_with_a_migrated_database_is_ready():
    assert await get_health(path="/readyz") == (200, {"status": "ready"})


async def test_a_process_without_its_database_is_not_ready(monkeypatch):
    monkeypatch.setattr(health, "_is_readable", lambda: False)

    assert await get_health(path="/readyz") == (
        503,
        {"status": "not ready", "trouble": ["database"]},
    )


async def test_a_process_with_unapplied_migrations_is_not_ready(monkeypatch):
    def plan(self, targets):
        return [("agents", "0099")]

    monkeypatch.setattr(health, "migrations", health._Probe(health._MigrationCheck()))
    with monkeypatch.context() as patch:
        patch.setattr(health.MigrationExecutor, "migration_plan", plan)
        before = await get_health(path="/readyz")

    assert before == (503, {"status": "not ready", "trouble": ["migrations"]})
    assert (await get_health(path="/readyz"))[0] == 200


async def test_a_process_that_is_shutting_down_is_not_ready(monkeypatch):
    monkeypatch.setattr(health, "_is_leaving", False)
    health.start_draining()

    assert await get_health(path="/readyz") == (
        503,
        {"status": "not ready", "trouble": ["leaving"]},
    )
    assert (await get_health(path="/healthz"))[0] == 200
