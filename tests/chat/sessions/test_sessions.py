"""Chats: start, send, search, rename, delete."""

import asyncio
import threading
import time
from contextlib import suppress
from datetime import timedelta
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from agents import runs
from agents.access import recently_deleted
from agents.catalog.language_models import model_clients
from agents.engine.state import repair_history
from agents.engine.testing import Says, ScriptedModel
from agents.models import Agent, HiddenTopic, Run, RunEvent
from chat import messages
from chat.errors import MessageRejected
from chat.messages import run_factory
from chat.models import ChatSession, Message
from chat.sessions import branches, titles
from chat.sessions.listing import session_list
from tests.conftest import frames_until, tab, until, verify_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def run_message(message):
    """Return the message once its run has ended."""
    await messages.dispatch(await ChatSession.objects.aget(pk=message.session_id), message)
    await runs.wait(message.run)
    return await verify_run(message.run)


async def test_the_first_message_creates_a_chat_named_after_it(person):
    begin = partial(sync_to_async(messages.save), None)

    message = await begin(person, "  What is 12.5%\u3000of 3480?\n", "a")

    session = await ChatSession.objects.aget()
    assert session.title == "What is 12.5% of 3480?"
    assert message.text == "What is 12.5%\u3000of 3480?"
    assert message.is_new
    assert "435" in (await run_message(message)).answer


async def test_a_message_sent_again_is_saved_once(person):
    begin = partial(sync_to_async(messages.save), None)

    first, again = await begin(person, "6 * 7", "a"), await begin(person, "6 * 7", "a")

    assert (again.pk, again.is_new) == (first.pk, False)
    assert await ChatSession.objects.acount() == 1


async def test_two_users_can_use_the_same_message_id(person, stranger):
    begin = partial(sync_to_async(messages.save), None)

    await begin(person, "6 * 7", "a")
    await begin(stranger, "6 * 7", "a")

    assert await Message.objects.acount() == 2


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("short", "short"),
        ("x" * 100, "x" * 59 + "…"),
        ("word " * 30, "word word word word word word word word word word word word…"),
        ("足跡" * 50, "足跡" * 29 + "足…"),
        ("a\n\n\tb", "a b"),
    ],
)
def test_a_title_is_one_short_line(text, title):
    assert titles.make_title(text) == title


@given(st.text(min_size=1))
def test_any_text_is_saved_whole_or_rejected(text):
    with suppress(MessageRejected):
        assert_whole(messages.clean_text(text))


def assert_whole(kept):
    assert kept == kept.strip()
    assert kept.encode()
    assert "\0" not in kept
    assert len(titles.make_title(kept)) <= 61


async def test_the_next_question_gets_the_conversation(person, monkeypatch):
    model = ScriptedModel(
        Says.call("calculator", input="6 * 7"), Says(answer="42."), Says(answer="As I said.")
    )
    monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)
    first = await sync_to_async(messages.save)(None, person, "What is it?", "a")
    await run_message(first)
    chat = await ChatSession.objects.aget()
    second = await sync_to_async(messages.save)(chat, person, "Sure?", "b")
    await run_message(second)

    sent = model.requests[-1]["messages"][1:]
    roles = [message["role"] for message in sent]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert repair_history(sent) == sent


async def test_a_blocked_question_is_never_sent_to_a_model(person, monkeypatch):
    model = ScriptedModel(Says(answer="Hello."))
    monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)
    secret = "-----BEGIN PRIVATE KEY-----"
    first = await sync_to_async(messages.save)(None, person, secret, "a")
    assert (await run_message(first)).status == "blocked"
    chat = await ChatSession.objects.aget()
    await run_message(await sync_to_async(messages.save)(chat, person, "Hello?", "b"))

    assert secret not in str(model.requests)
    model.assert_used_up()


async def test_an_agent_can_be_chosen(person):
    await Agent.objects.acreate(name="other", model="demo")

    message = await sync_to_async(messages.save)(None, person, "6 * 7", "a", "other")

    assert message.run.agent_name == "other"


def test_a_rejected_message_leaves_nothing_behind(person):
    with pytest.raises(MessageRejected):
        messages.save(None, person, "6 * 7", "a", "nobody")

    assert not ChatSession.objects.exists()
    assert not Run.objects.exists()


def test_the_last_used_chat_comes_first(person):
    old = ChatSession.objects.create(user=person, title="Old")
    ChatSession.objects.create(user=person, title="New")

    messages.save(old, person, "6 * 7", "a")

    [today] = session_list.sections(session_list.read(person), session_list.live_runs(person))
    listed = today.rows
    assert [chat.title for chat in listed] == ["Old", "New"]
    assert [chat.live is not None for chat in listed] == [True, False]


@pytest.mark.parametrize(
    ("title", "kept"),
    [(" New \n name ", "New name"), ("x" * 200, "x" * 80), ("  ", "Sums"), ("\0", "Sums")],
)
def test_a_new_title_is_reduced_to_one_line(chat, title, kept):
    titles.rename(chat, title)

    chat.refresh_from_db()
    assert chat.title == kept


async def test_deleting_a_chat_deletes_everything_of_it(person_async_client, person):
    message = await sync_to_async(messages.save)(None, person, "6 * 7", "a")
    await run_message(message)

    await person_async_client.post(f"/chat/{message.session_id}/delete/")
    assert (await person_async_client.get(f"/chat/{message.session_id}/")).status_code == 404
    await ChatSession.objects.aupdate(deleted_at=timezone.now() - timedelta(days=31))
    await sync_to_async(recently_deleted.erase_due)()

    for model in (ChatSession, Message, Run, RunEvent, HiddenTopic):
        assert not await model.objects.aexists(), model


async def test_a_disconnect_while_sending_leaves_no_orphaned_run(
    person_async_client, person, monkeypatch
):
    history, asked_for_history = run_factory.history, threading.Event()

    def slow(*subject):
        asked_for_history.set()
        time.sleep(0.2)
        return history(*subject)

    monkeypatch.setattr(run_factory, "history", slow)
    sending = asyncio.create_task(person_async_client.post("/chat/", {"text": "6 * 7"}))
    async with asyncio.timeout(10):
        await asyncio.to_thread(asked_for_history.wait)
    sending.cancel()
    await asyncio.wait([sending])

    run = await Run.objects.aget()
    await until(run, "run_finished")
    assert (await verify_run(run)).status == "completed"


async def test_questions_of_two_tabs_are_both_answered(chat):
    path = f"/ws/chat/{chat.pk}/"
    async with tab(chat.user, path) as one, tab(chat.user, path) as other:
        await one.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await other.send_json_to({"type": "message", "text": "7 * 8", "client_id": "b"})
        for page in (one, other):
            shown = ""
            while not all(f">{answer}<" in shown for answer in (42, 56)):
                shown += await page.receive_from(10)
        # The last words of an answer are on the page before the run is saved as completed.
        async for run in Run.objects.all():
            await until(run, "run_finished")

    assert await Run.objects.filter(status="completed").acount() == 2
    assert await Message.objects.acount() == 2


async def test_a_run_page_continues_with_its_chat(chat, caplog):
    """A run's page follows its chat's topic, which also announces messages."""
    say = sync_to_async(messages.save)
    first = await say(chat, chat.user, "6 * 7", "a")
    await run_message(first)
    async with tab(chat.user, f"/ws/runs/{first.run_id}/") as page:
        await frames_until(page, 'data-status="completed"')
        await run_message(await say(chat, chat.user, "7 * 8", "b"))
        assert await page.receive_nothing()
        await page.send_to(text_data="still there?")
        assert await page.receive_nothing()

    assert not [record for record in caplog.records if record.exc_info]


def test_history_is_read_in_one_query_for_any_ending(chat, django_assert_num_queries):
    endings = [("completed", "completed"), ("failed", "error"), ("stopped", "cancelled")]
    for at, (status, reason) in enumerate(endings):
        ended = {"status": status, "stopped_reason": reason, "answer": "" if at else "42"}
        run = Run.objects.create(user=chat.user, topic=chat.topic, query=f"{at}?", **ended)
        before = Message.objects.last()
        about = {"run": run, "client_id": str(at), "parent": before}
        Message.objects.create(session=chat, author=chat.user, **about)
    path = branches.visible_path(chat, chat.user)
    run_factory.history(chat, path)

    with django_assert_num_queries(1):
        said = [message["content"] for message in run_factory.history(chat, path)]

    assert said[:2] == ["0?", "42"]
    assert said[2::2] == ["1?", "2?"]
