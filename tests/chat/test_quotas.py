"""Limits per user: concurrent runs, messages per minute, tokens per day."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone

from agents import runs
from agents.models import DeletedUsage, Run
from chat import messages
from chat.errors import MessageRejected
from chat.messages import message_actions, session_status
from chat.models import ChatSession, Message
from chat.sessions import deletion

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

begin = partial(sync_to_async(messages.save), None)


async def rejection(*about):
    with pytest.raises(MessageRejected) as reason:
        await begin(*about)
    return str(reason.value)


async def test_the_concurrent_runs_of_a_user_are_limited(person, stranger, settings):
    settings.PERSON_RUNS = 2
    first = await begin(person, "one", "a")
    await begin(person, "two", "b")

    sentence = "You already have 2 runs in progress. Wait for one to finish, or stop one."
    assert await rejection(person, "three", "c") == sentence
    assert await ChatSession.objects.acount() == 2  # a rejected message leaves no rows
    await begin(stranger, "others may", "d")

    await runs.stop(first.run)
    assert (await begin(person, "three", "c")).is_new


def test_fifty_concurrent_requests_do_not_exceed_the_limit(person, settings):
    settings.PERSON_RUNS = 5

    def ask(number):
        try:
            return messages.save(None, person, f"question {number}", f"id {number}").run_id
        except MessageRejected:
            return None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(10) as people:
        asked = list(people.map(ask, range(50)))

    assert len([run for run in asked if run]) == 5
    assert Run.objects.running().count() == Message.objects.count() == 5


async def test_messages_per_minute_are_limited(person, settings):
    settings.PERSON_MESSAGES = 3
    chat = (await begin(person, "one", "a")).session
    say = sync_to_async(messages.save)
    for text in ("two", "three"):
        await say(chat, person, text, text)

    with pytest.raises(MessageRejected, match="ve sent 3 messages in the last minute."):
        await say(chat, person, "four", "four")
    assert not (await say(chat, person, "three", "three")).is_new  # it was taken before

    await Message.objects.aupdate(created_at=timezone.now() - timedelta(minutes=2))
    assert (await say(chat, person, "four", "four")).is_new


async def test_tokens_are_limited_per_day(person, settings):
    settings.PERSON_TOKENS = 1000
    spent = {"user": person, "query": "q", "status": "completed"}
    run = await Run.objects.acreate(**spent, prompt_tokens=700, completion_tokens=300)

    assert await rejection(person, "more", "a") == (
        "You've reached your daily limit of 1,000 tokens. The limit resets tomorrow."
    )

    run.started_at -= timedelta(days=1)
    await run.asave()
    assert (await begin(person, "more", "a")).is_new


async def test_deleting_resets_no_limit(person, settings):
    """Limits count what was done, not the rows that are left of it."""
    settings.PERSON_MESSAGES, settings.PERSON_TOKENS = 1, 1000
    sent = await begin(person, "one", "a")
    await runs.stop(sent.run)
    await Run.objects.aupdate(prompt_tokens=700, completion_tokens=200)
    await ChatSession.objects.aupdate(title_tokens=100)

    await message_actions.delete(sent.session, person, sent.pk, below=True)
    assert "message in the last minute" in await rejection(person, "two", "b")

    await deletion.delete(sent.session)
    settings.PERSON_MESSAGES = 0
    await ChatSession.objects.aupdate(deleted_at=timezone.now() - timedelta(hours=1))
    await sync_to_async(deletion.erase_due)()
    assert not await Run.objects.aexists()
    assert not await ChatSession.objects.aexists()
    assert "daily limit of 1,000 tokens" in await rejection(person, "two", "b")

    await DeletedUsage.objects.aupdate(day=timezone.now() - timedelta(days=2))
    assert (await begin(person, "two", "b")).is_new


async def test_a_deleted_user_leaves_no_usage(person, settings):
    settings.PERSON_TOKENS = 1000
    sent = await begin(person, "one", "a")
    await runs.stop(sent.run)
    await Run.objects.aupdate(prompt_tokens=1000)

    await sync_to_async(person.delete)()

    assert not await DeletedUsage.objects.aexists()


async def test_a_queued_message_says_what_it_waits_for(person, settings):
    chat = (await begin(person, "one", "a")).session
    await sync_to_async(messages.save)(chat, person, "two", "b")
    settings.PERSON_TOKENS = 10
    await Run.objects.aupdate(status="completed", prompt_tokens=10)

    await messages.answer_waiting()

    standing = await sync_to_async(session_status.get_status)(chat, None)
    assert [message.text for message in standing.queued] == ["two"]
    assert standing.blocked_reason.startswith("You've reached your daily limit of 10 tokens.")
