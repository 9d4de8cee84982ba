"""A page's absence from a run is recorded, and nothing else."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.utils import timezone

from agents.models import Disconnection, Run
from agents.runs import disconnections
from chat.models import ChatSession, Member, Message
from tests.conftest import tab
from tests.sampling import one_in

pytestmark = pytest.mark.django_db(transaction=True)

LOST, CLOSED = 1006, 1001


@pytest.fixture
def chat(person):
    return ChatSession.objects.create(user=person, title="Sums")


@pytest.fixture
def run(chat, person):
    return Run.objects.create(topic=chat.topic, user=person, query="?", agent_name="helper")


@pytest.fixture
def message(chat, person, run):
    return Message.objects.create(session=chat, author=person, text="?", run=run, client_id="a")


async def visit_page(person, message, *, code=CLOSED, **told):
    """Connect and disconnect a page, with these query parameters."""
    asked = "&".join(f"{name}={value}" for name, value in told.items())
    address = f"/ws/chat/{message.session_id}/?after={message.pk}&{asked}"
    async with tab(person, address) as page:
        await page.receive_from(timeout=10)
        await page.disconnect(code, timeout=10)


async def saved_absences():
    return [row async for row in Disconnection.objects.order_by("pk")]


async def test_a_reconnected_page_of_a_live_run_has_a_disconnection(person, message, run):
    await visit_page(person, message, code=LOST, page="one")
    (away,) = await saved_absences()
    assert (away.run_id, away.reason, away.came_back_at) == (run.pk, "lost", None)

    await visit_page(person, message, page="one", away=4000)

    away = (await saved_absences())[0]
    assert away.came_back_at - away.left_at == timedelta(seconds=4)


async def test_a_page_reports_the_length_of_a_server_outage(person, message):
    await visit_page(person, message, page="one", away=2500, code=LOST)

    back, again = await saved_absences()
    assert back.came_back_at - back.left_at == timedelta(seconds=2.5)
    assert again.came_back_at is None


async def test_pages_are_told_apart_when_they_reconnect(person, message):
    await visit_page(person, message, code=LOST, page="one")
    await visit_page(person, message, code=LOST, page="other", away=10)

    assert [(a.page, a.came_back_at is None) for a in await saved_absences()] == [
        ("one", True),
        ("other", False),
        ("other", True),
    ]


async def test_a_user_who_closed_the_page_can_return_on_another(person, message):
    await visit_page(person, message, code=CLOSED, page="one")
    assert [(a.reason, a.came_back_at) for a in await saved_absences()] == [("closed", None)]

    await visit_page(person, message, code=LOST, page="other")

    assert [a.came_back_at is None for a in await saved_absences()] == [False, True]


async def test_another_members_page_does_not_count_for_the_asker(person, stranger, message):
    await Member.objects.acreate(session_id=message.session_id, user=stranger)

    await visit_page(stranger, message, code=LOST, page="theirs", away=1000)
    assert await saved_absences() == []
    await visit_page(person, message, code=LOST, page="one")

    assert [away.page for away in await saved_absences()] == ["one"]


async def test_a_page_without_a_live_run_records_nothing(person, message, run):
    ended_at = timezone.now() - timedelta(minutes=1)
    await Run.objects.filter(pk=run.pk).aupdate(status="completed", ended_at=ended_at)

    await visit_page(person, message, code=LOST, page="one")
    await visit_page(person, message, page="one", away=500)

    assert await saved_absences() == []


async def test_a_disconnection_lasts_to_the_end_of_the_run(person, message, run):
    now = timezone.now()
    await Run.objects.filter(pk=run.pk).aupdate(status="completed", ended_at=now)

    await visit_page(person, message, page="one", away=60_000)

    (away,) = await saved_absences()
    assert away.left_at < now < away.came_back_at


@pytest.mark.parametrize("page", one_in(2, ["", "%00", "A b", "x" * 41, "%ED%A0%80"]))
@pytest.mark.parametrize("away", one_in(2, ["", "-1", "9" * 18, "9" * 99, "%00"]))
async def test_a_page_with_an_invalid_report_is_served(person, message, page, away):
    await visit_page(person, message, page=page, away=away)

    assert await saved_absences() == []


async def test_a_disconnection_lasts_at_most_a_week(person, message):
    await visit_page(person, message, page="one", away="9" * 18)

    away = (await saved_absences())[0]
    assert away.came_back_at - away.left_at == disconnections.MAX_AWAY


async def test_the_number_of_disconnections_is_limited(message, run):
    def flutter():
        for _ in range(disconnections.MAX_PER_RUN + 3):
            disconnections.record_reconnect([run.pk], "one", timedelta(seconds=1))

    await sync_to_async(flutter)()

    assert len(await saved_absences()) == disconnections.MAX_PER_RUN


async def test_a_full_disk_does_not_prevent_watching(person, message, monkeypatch, caplog):
    def full(*_):
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(Disconnection.objects, "bulk_create", full)

    await visit_page(person, message, code=LOST, page="one", away=10)

    assert "Can't save a disconnection" in caplog.text
