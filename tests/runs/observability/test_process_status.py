"""Status reports of all processes."""

import asyncio
import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.utils import timezone

from agents import runs
from agents.engine.events import EventFactory, EventType
from agents.models import ServerProcess
from agents.runs import leases
from agents.runs.event_writer import EventWriter
from agents.runs.observability import process_status
from agents.runs.observability.loop_watchdog import Watchdog
from chat.models import ChatSession
from tests.conftest import tab

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]


@pytest.fixture
async def beating(monkeypatch):
    monkeypatch.setattr(process_status, "HEARTBEAT_SECONDS", 0.05)
    process_status.start("web")
    yield
    await process_status.stop()


async def wait_for_status(**facts):
    """Return this process's row once it has these values."""
    async with asyncio.timeout(10):
        while True:
            row = await ServerProcess.objects.filter(name=leases.owner(), **facts).afirst()
            if row is not None:
                return row
            await asyncio.sleep(0.02)


def hang():
    """Block the event loop, but not the reporting thread."""
    time.sleep(0.6)


def silent(name, seconds):
    seen = timezone.now() - timedelta(seconds=seconds)
    return ServerProcess.objects.create(name=name, kind="web", started_at=seen, seen_at=seen)


async def test_a_process_has_a_status_row_until_it_stops(beating):
    row = await wait_for_status()
    later = await wait_for_status(seen_at__gt=row.seen_at)
    await process_status.stop()

    assert (row.kind, row.version) == ("web", "0.1.0")
    assert row.memory > 10_000_000
    assert later.started_at == row.started_at
    assert not await ServerProcess.objects.aexists()


async def test_open_sockets_are_counted(beating, person):
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/"), tab(person, f"/ws/chat/{chat.pk}/"):
        await wait_for_status(sockets=2)

    await wait_for_status(sockets=0)


class Thinking:
    """A model that never sends a token."""

    dialect = "native"

    async def stream(self, messages, tools=(), **options):
        await asyncio.sleep(60)
        yield


async def test_live_runs_are_counted(beating, agent, scripted):
    scripted(model=Thinking())
    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1")
    runs.launch(run)

    await wait_for_status(runs=1)
    await runs.stop(run)
    await wait_for_status(runs=0)


async def test_a_blocked_event_loop_is_visible_while_it_is_blocked(beating):
    await wait_for_status()
    hang()
    row = await sync_to_async(ServerProcess.objects.get)()

    assert row.lateness > 0.1
    assert "test_process_status.py:hang" in (await wait_for_status(stalls=1)).stalled_in


async def test_status_updates_resume_after_a_database_outage(beating, monkeypatch, caplog):
    tell, failures = (
        process_status.report,
        [OperationalError("away"), OperationalError("still away")],
    )

    def sometimes(*about):
        if failures:
            raise failures.pop()
        tell(*about)

    before = await wait_for_status()
    monkeypatch.setattr(process_status, "report", sometimes)
    await wait_for_status(seen_at__gt=before.seen_at + timedelta(milliseconds=100))

    assert not failures
    assert caplog.text.count("Can't save the status of this process") == 1


async def test_processes_without_heartbeat_are_deleted_after_a_while():
    dog = Watchdog()
    await sync_to_async(silent)("gone", process_status.STALE_AFTER.total_seconds() + 5)
    await sync_to_async(silent)("late", 60)

    await sync_to_async(process_status.report)("worker", dog)
    dog.stop()

    names = [row.name async for row in ServerProcess.objects.order_by("name")]
    assert sorted(names) == sorted(["late", leases.owner()])


def test_missing_heartbeats_are_measured_by_the_database_clock():
    silent("late", 60)

    silence = ServerProcess.objects.with_silence().get().silence

    assert timedelta(seconds=59) < silence < timedelta(seconds=90)


async def test_the_event_writer_reports_its_lag(agent, monkeypatch):
    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1")
    journal = EventWriter()
    monkeypatch.setattr("agents.runs.event_writer._commit", lambda batch: time.sleep(0.3))
    kept = journal.add(run, EventFactory("helper")(EventType.DELTA, content="a"))
    await asyncio.sleep(0.1)
    while_waiting = journal.lag()
    await kept

    assert while_waiting > 0
    assert journal.lag() >= 0.3
    assert journal.lag() == 0
    await journal.stop()
