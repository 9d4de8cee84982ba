"""How much of a chat its agent gets: turns, summaries, branches."""

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from agents.models import Agent, HistorySummary
from chat import messages
from chat.messages import message_actions, run_factory
from tests.chat.live.test_long_chats import create_messages

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def ask(chat, text, client_id):
    from agents import runs

    message = await messages.submit(chat, chat.user, text, client_id)
    await runs.wait(message.run)
    await message.run.arefresh_from_db()
    return message


@pytest.fixture
def few(agent):
    Agent.objects.update(max_history_turns=4)


def history(chat):
    return run_factory.history(chat, agent=Agent.objects.get())


async def test_a_summary_is_written_once_and_used_again(chat, few, async_client):
    await sync_to_async(create_messages)(chat, 5, text="What is 6 * 7?")

    await ask(chat, "1 + 1", "a")
    await ask(chat, "2 + 2", "b")

    assert await HistorySummary.objects.acount() == 1
    sent = await sync_to_async(history)(chat)
    assert "6 * 7" in sent[0]["content"]
    assert [m["content"] for m in sent if m["role"] == "user"][1:] == [
        *["What is 6 * 7?"] * 2,
        *["1 + 1", "2 + 2"],
    ]
    await async_client.aforce_login(chat.user)
    response = await async_client.get(reverse("chat:session", args=[chat.pk]))
    page = response.text
    assert page.count("3 earlier turns were summarized (3 → 1).</a>") == 1


async def test_a_deleted_message_is_in_no_summary_any_more(chat, few):
    await sync_to_async(create_messages)(chat, 5)
    message = await ask(chat, "1 + 1", "a")

    await message_actions.delete(chat, chat.user, message.pk, below=False)

    assert not await HistorySummary.objects.aexists()


async def test_an_agent_without_history_gets_only_the_question(chat, agent):
    await Agent.objects.aupdate(max_history_turns=0)
    await sync_to_async(create_messages)(chat, 3)

    assert await sync_to_async(history)(chat) == []
