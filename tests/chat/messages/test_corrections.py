"""A conversation continues from the corrected answer."""

import pytest
from asgiref.sync import sync_to_async

from agents.engine.testing import Says
from agents.models import Run
from agents.review.annotations import feedback
from agents.runs import event_store
from chat.messages import run_factory
from chat.models import Message
from chat.sessions import branches
from tests.conftest import run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def create_corrected_run(chat, person, text="It is 42."):
    run = await run_question("6 * 7?", topic=chat.topic, user=person)
    await Message.objects.acreate(session=chat, author=person, run=run, client_id="a")
    await sync_to_async(feedback.correct)(person, run, text, "")
    return run


async def test_the_next_turn_gets_the_answer_and_its_correction(chat, person, scripted):
    scripted(Says(answer="It is 41."))
    await create_corrected_run(chat, person)

    history = await sync_to_async(run_factory.history)(chat)

    assert [message["role"] for message in history] == ["user", "assistant"]
    assert history[1]["content"] == f"It is 41.\n\n{event_store.CORRECTION_NOTE}\n\nIt is 42."


async def test_a_run_without_an_answer_can_be_corrected(chat, person, scripted):
    scripted(*(Says.call("calculator", expression="6 * 7") for _ in range(3)))
    run = await create_corrected_run(chat, person)

    [*_, last] = await sync_to_async(event_store.transcript)(run)

    assert last["content"].startswith("(No answer: ")
    assert last["content"].endswith("It is 42.")


async def test_history_is_read_in_one_query(chat, person, django_assert_max_num_queries):
    for at in range(5):
        run = await Run.objects.acreate(topic=chat.topic, query="?", status="completed")
        before = await chat.messages.order_by("pk").alast()
        about = {"author": person, "run": run, "parent": before}
        await chat.messages.acreate(**about, client_id=f"{at}")

    @sync_to_async
    def read():
        path = branches.visible_path(chat, person)
        with django_assert_max_num_queries(1):
            return run_factory.history(chat, path)

    assert len(await read()) == 10
