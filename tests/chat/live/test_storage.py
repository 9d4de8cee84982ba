"""Failed saves are reported, and pages say why nothing moves."""

import asyncio
import threading

import pytest
from django.db import OperationalError, connection

from agents.db import errors
from agents.runs import approvals, event_writer
from chat import messages
from chat.errors import MessageRejected
from chat.models import Message
from tests.conftest import frames_until, tab

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

FULL = "Storage is full"


@pytest.fixture
def _full():
    """Let the database not grow, in this thread."""
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite can be told how much it may keep")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")  # space freed by earlier deletions would be enough
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages}")
        yield
        cursor.execute("PRAGMA max_page_count = 4294967294")


@pytest.mark.usefixtures("_full")
def test_a_message_is_rejected_with_a_message_when_storage_is_full(chat, person):
    with pytest.raises(MessageRejected, match=FULL):
        messages.save(chat, person, "x" * 100_000, "a")

    assert not Message.objects.exists()


@pytest.mark.usefixtures("_full")
def test_a_first_message_leaves_no_chat_when_storage_is_full(person):
    with pytest.raises(MessageRejected, match=FULL):
        messages.save(None, person, "x" * 100_000, "a")

    assert not person.chat_sessions.exists()


def test_an_unreachable_database_has_another_message_than_a_full_one():
    with pytest.raises(approvals.DecisionRejected, match="isn't responding"):  # noqa: SIM117
        with errors.reraise_as(approvals.DecisionRejected):
            raise OperationalError("server closed the connection unexpectedly")


async def test_a_page_shows_when_storage_is_full_and_when_it_recovers(
    chat, person, monkeypatch
):
    monkeypatch.setattr(event_writer, "LATE_SECONDS", 0.05)
    let_go, is_held = threading.Event(), threading.Event()
    monkeypatch.setattr(
        event_writer, "_commit", _hold_commit(event_writer._commit, is_held, let_go)
    )
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await asyncio.to_thread(is_held.wait, 10)
        late = await frames_until(page, "save right now.")
        monkeypatch.setattr(event_writer, "LATE_SECONDS", 10)  # a busy machine is late as well
        let_go.set()
        frames = await frames_until(page, 'data-status="completed"')

    assert 'id="notice"' in late[-1]
    notices = [frame for frame in frames if 'id="notice"' in frame]
    assert ["Nothing" in notice for notice in notices] == [False]


def _hold_commit(commit, is_held, let_go):
    def held(batch):
        is_held.set()
        let_go.wait(10)
        commit(batch)

    return held
