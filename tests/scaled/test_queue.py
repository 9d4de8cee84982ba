"""With workers, the process that drove a run starts the queued one."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.models import Run
from chat import messages
from chat.models import ChatSession, Message
from tests.scaled.test_workers import queued_runs

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def test_a_worker_enqueues_the_next_message_after_a_run(person):
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    first = await sync_to_async(messages.save)(chat, person, "6 * 7", "a")
    second = await sync_to_async(messages.save)(chat, person, "7 * 8", "b")
    assert await sync_to_async(queued_runs)() == [first.run_id]
    assert second.is_queued

    await runs.drive(first.run_id)
    await runs.shut_down()

    message = await Message.objects.aget(client_id="b")
    assert not message.is_queued
    assert await sync_to_async(queued_runs)() == [first.run_id, message.run_id]
    assert (await Run.objects.aget(pk=message.run_id)).owner == ""
