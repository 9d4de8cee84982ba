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
from agents.web import health
from project.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)


async def get_health(host=b"testserver", path="/health/"):
    request = HttpCommunicator(application, "GET", path, headers=[(b"host", host)])
    response = await request.get_response(timeout=10)
    return response["status"], json.loads(response["body"])


async def test_a_process_that_can_do_its_work_says_so():
    assert await get_health() == (200, {"status": "ok"})


async def test_a_balancer_may_call_us_by_any_name_and_needs_no_password():
    assert (await get_health(host=b"10.0.0.7:8000"))[0] == 200


async def test_a_database_that_fails_is_told_in_one_word(monkeypatch):
    def exists():
        raise OperationalError("password of ada is wrong")

    monkeypatch.setattr(ServerProcess.objects, "exists", exists)

    assert await get_health() == (503, {"status": "down", "trouble": ["database"]})


async def test_a_database_that_hangs_holds_up_nobody(monkeypatch):
    let_go, asks = threading.Event(), []
    monkeypatch.setattr(health, "TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(health, "_is_readable", lambda: asks.append(1) or let_go.wait(30))

    async with asyncio.timeout(10):
        answers = await asyncio.gather(*[get_health() for _ in range(20)])
    let_go.set()

    assert {status for status, _ in answers} == {503}
    assert len(asks) == 1


async def test_it_is_well_again_once_the_database_is_back(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(health, "_is_readable", lambda: False)
        assert (await get_health())[0] == 503

    assert (await get_health())[0] == 200


async def test_a_layer_that_does_not_answer_degrades_and_takes_nobody_away(monkeypatch):
    async def receive(channel):
        await asyncio.sleep(60)

    monkeypatch.setattr(pubsub, "PING_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(get_channel_layer(), "receive", receive)

    assert await get_health() == (200, {"status": "degraded", "trouble": ["layer"]})


async def test_a_disk_that_is_nearly_full_is_told(monkeypatch):
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 10**18)

    assert await get_health() == (200, {"status": "degraded", "trouble": ["disk"]})


async def test_asking_leaves_no_channel_behind():
    layer = get_channel_layer()
    before = set(layer.channels)

    for _ in range(5):
        await pubsub.ping()

    assert set(layer.channels) == before


async def test_a_process_is_alive_whatever_its_database_does(monkeypatch):
    monkeypatch.setattr(health, "_is_readable", lambda: False)

    assert await get_health(path="/healthz") == (200, {"status": "alive"})


async def test_a_process_is_ready_where_its_database_is_there_and_migrated():
    assert await get_health(path="/readyz") == (200, {"status": "ready"})


async def test_without_its_database_nobody_is_sent_to_it(monkeypatch):
    monkeypatch.setattr(health, "_is_readable", lambda: False)

    assert await get_health(path="/readyz") == (
        503,
        {"status": "not ready", "trouble": ["database"]},
    )


async def test_before_its_migrations_are_applied_nobody_is_sent_to_it(monkeypatch):
    def plan(self, targets):
        return [("agents", "0099")]

    monkeypatch.setattr(health, "migrations", health._Probe(health._MigrationCheck()))
    with monkeypatch.context() as patch:
        patch.setattr(health.MigrationExecutor, "migration_plan", plan)
        before = await get_health(path="/readyz")

    assert before == (503, {"status": "not ready", "trouble": ["migrations"]})
    assert (await get_health(path="/readyz"))[0] == 200


async def test_a_process_that_was_told_to_end_is_sent_nobody(monkeypatch):
    monkeypatch.setattr(health, "_is_leaving", False)
    health.start_draining()

    assert await get_health(path="/readyz") == (
        503,
        {"status": "not ready", "trouble": ["leaving"]},
    )
    assert (await get_health(path="/healthz"))[0] == 200
