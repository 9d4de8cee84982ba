"""Messages sent during a run are saved, displayed, and answered once, in order."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async

from agents import runs
from agents.catalog.language_models import model_clients
from agents.db import periodic
from agents.engine.testing import Says, ScriptedModel
from agents.models import Agent, Run
from agents.runs import executor, pubsub
from agents.web.workflows import start
from chat import messages
from chat.messages import queue, queue_actions
from chat.models import ChatSession, Message
from chat.sharing import members
from tests.chat.conftest import Held
from tests.conftest import as_async_user, frames_until, tab, verify_run
from tests.sampling import one_in

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

FINISHED = 'class="run" data-status="completed"'


@pytest.fixture
async def client(person):
    return await as_async_user(person)


def message(text, **more):
    return {"type": "message", "text": text, "client_id": text, **more}


async def send_messages(chat, *texts):
    """Send messages; the first one is answered, the others are queued."""
    for text in texts:
        message = await sync_to_async(messages.save)(chat, chat.user, text, text)
        await messages.dispatch(chat, message)
    return [message async for message in chat.messages.queued()]


async def queued_texts(chat):
    return [message.text async for message in chat.messages.queued()]


async def conversation(chat):
    return [message.text async for message in chat.messages.posted()]


async def wait_for_runs(chat, count):
    """Wait until this many runs of the chat are completed."""
    completed = Run.objects.filter(topic=chat.topic, status="completed")
    told = asyncio.Event()
    async with (
        asyncio.timeout(20),
        pubsub.subscribe(chat.topic, lambda kind, facts: told.set()),
    ):
        while await completed.acount() < count:
            await told.wait()
            told.clear()


async def test_a_message_sent_during_a_run_is_answered_afterwards(chat, model):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to(message("one"))
        await frames_until(page, "Well,")
        await page.send_json_to(message("two"))
        [*_, shown] = await frames_until(page, 'data-client-id="two"')
        model.let_go.set()
        frames = await frames_until(page, "that was 2.")

    assert "Queued" in shown
    assert 'hx-swap-oob="beforeend:#messages"' in "".join(frames)
    assert await queued_texts(chat) == []
    assert model.requests[1] == ["one", "Well, that was 1.", "two"]


async def test_queued_messages_are_answered_in_order_one_at_a_time(chat, model):
    await send_messages(chat, "one", "two", "three")
    assert await queued_texts(chat) == ["two", "three"]
    assert await Run.objects.acount() == 1

    model.let_go.set()
    await wait_for_runs(chat, 3)

    assert await conversation(chat) == ["one", "two", "three"]
    assert [request[-1] for request in model.requests] == ["one", "two", "three"]


async def test_a_queued_message_is_saved_before_the_page_is_notified(chat, model, monkeypatch):
    publish, kept = messages.dispatching.pubsub.publish, []

    async def noting(topic, kind, **facts):
        kept.append((kind, await Message.objects.queued().acount()))
        await publish(topic, kind, **facts)

    await send_messages(chat, "one")
    monkeypatch.setattr(messages.dispatching.pubsub, "publish", noting)
    await send_messages(chat, "two")

    assert ("queue.changed", 1) in kept
    assert ("queue.changed", 0) not in kept


async def test_a_message_sent_twice_is_queued_once(chat, model):
    first = await send_messages(chat, "one", "two", "two", "two")

    model.let_go.set()
    await wait_for_runs(chat, 2)
    again = await sync_to_async(messages.save)(chat, chat.user, "two", "two")

    assert len(first) == 1
    assert not again.is_new
    assert await Message.objects.acount() == 2


async def test_the_queue_is_visible_in_another_tab_and_after_a_reload(chat, model, client):
    path = f"/ws/chat/{chat.pk}/"
    await send_messages(chat, "one")
    async with tab(chat.user, path) as one, tab(chat.user, path) as other:
        await one.send_json_to(message("Where was I?"))
        for page in (one, other):
            assert "Where was I?" in (await frames_until(page, "Queued"))[-1]
    reloaded = (await client.get(f"/chat/{chat.pk}/")).text

    assert "Where was I?" in reloaded[reloaded.index('id="queue"') :]
    async with tab(chat.user, path) as later:
        await frames_until(later, "Where was I?")


async def test_stopping_ends_the_answer_and_starts_the_next(chat, model):
    await send_messages(chat, "one", "two")
    run = await Run.objects.aget()

    await runs.stop(run)
    model.let_go.set()
    await wait_for_runs(chat, 1)

    assert (await verify_run(run)).status == "stopped"
    assert await conversation(chat) == ["one", "two"]


async def test_the_next_message_starts_after_a_failed_run(chat, monkeypatch):
    class Broken(Held):
        async def stream(self, **request):
            async for chunk in super().stream(**request):
                if len(self.requests) == 1 and self.let_go.is_set():
                    raise ZeroDivisionError
                yield chunk

    monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)
    model = Broken()
    await send_messages(chat, "one", "two")
    model.let_go.set()
    await wait_for_runs(chat, 1)

    statuses = [run.status async for run in Run.objects.order_by("pk")]
    assert statuses == ["failed", "completed"]


async def test_the_queue_waits_while_a_run_awaits_approval(chat, monkeypatch, client):
    await Agent.objects.aupdate(auto_execute_tools=False)
    model = ScriptedModel(Says.call("calculator", input="6 * 7"), Says(answer="Next."))
    monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)
    await send_messages(chat, "one")
    run = await Run.objects.aget()
    await runs.wait(run)
    await send_messages(chat, "two")
    await messages.answer_waiting()

    page = (await client.get(f"/chat/{chat.pk}/")).text
    assert await queued_texts(chat) == ["two"]
    assert (
        "The agent is waiting for your decision. Queued messages are sent after that."
    ) in page

    await runs.stop(await Run.objects.aget())
    await wait_for_runs(chat, 1)
    assert await queued_texts(chat) == []


async def test_send_now_stops_the_answer_and_goes_first(chat, model):
    [_, three] = await send_messages(chat, "one", "two", "three")

    await queue_actions.send_now(chat, chat.user, three.pk)
    model.let_go.set()
    await wait_for_runs(chat, 2)

    assert await conversation(chat) == ["one", "three", "two"]
    statuses = [run.status async for run in Run.objects.order_by("pk")]
    assert statuses == ["stopped", "completed", "completed"]


async def test_send_now_does_not_stop_itself(chat, model, monkeypatch):
    """The previous answer finished just before it was stopped."""
    [two] = await send_messages(chat, "one", "two")
    stop = runs.stop

    async def late(run):
        model.let_go.set()
        await wait_for_runs(chat, 2)
        await stop(run)

    monkeypatch.setattr(runs, "stop", late)
    await queue_actions.send_now(chat, chat.user, two.pk)

    assert [run.status async for run in Run.objects.all()] == ["completed", "completed"]


async def test_a_page_sends_a_message_now(chat, model):
    [two] = await send_messages(chat, "one", "two")
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "Queued")
        await page.send_json_to({"type": "send_now", "message": str(two.pk)})
        await frames_until(page, 'class="run" data-status="stopped"')
        model.let_go.set()
        frames = await frames_until(page, FINISHED)

    assert "that was 2." in frames[-1]


def _has_queue(frames):
    return any('id="queue"' in frame for frame in frames)


async def test_removing_a_queued_message_returns_its_text(chat, model):
    [two] = await send_messages(chat, "one", "two <b>")
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "Queued")
        await page.send_json_to({"type": "withdraw", "message": str(two.pk)})
        frames = await frames_until(page, 'data-returned="two &lt;b&gt;"')
        frames += await frames_until(page, 'id="queue"') if not _has_queue(frames) else []

    assert "two &lt;b&gt;" not in [frame for frame in frames if 'id="queue"' in frame][-1]
    model.let_go.set()
    await wait_for_runs(chat, 1)
    assert await Message.objects.acount() == 1


async def test_without_a_socket_a_message_is_queued_removed_and_sent_now(chat, model, client):
    await send_messages(chat, "one")
    path = f"/chat/{chat.pk}"
    for text in ("two", "three"):
        assert (await client.post(f"{path}/messages/", {"text": text})).status_code == 302
    two, three = [queued async for queued in chat.messages.queued()]

    page = await client.post(f"{path}/queue/{two.pk}/withdraw/")
    sent = await client.post(f"{path}/queue/{three.pk}/now/")
    model.let_go.set()
    await wait_for_runs(chat, 1)

    assert "two</textarea>" in page.text
    assert (sent.status_code, sent.headers["Location"]) == (302, f"{path}/")
    assert await conversation(chat) == ["one", "three"]


async def test_a_message_that_cannot_be_removed_or_sent_is_unchanged(
    chat, model, client, stranger
):
    theirs = await ChatSession.objects.acreate(user=stranger, title="Theirs")
    [foreign] = await send_messages(theirs, "a", "b")
    [mine] = await send_messages(chat, "one", "two")
    answered = await chat.messages.posted().aget()
    answers = []
    for pk in (foreign.pk, answered.pk, 987_654_321, 2**63):
        for verb in ("now", "withdraw"):
            answers.append(await client.post(f"/chat/{chat.pk}/queue/{pk}/{verb}/"))

    assert {(a.status_code, a.headers["Location"], a.content) for a in answers} == {
        (302, f"/chat/{chat.pk}/", b"")
    }
    assert {m.pk async for m in Message.objects.queued()} == {foreign.pk, mine.pk}
    assert await Run.objects.live().acount() == 2


@pytest.mark.parametrize("pk", one_in(4, ["-1", "x", "", str(2**63), -1, True, "９"]))
async def test_invalid_queue_frames_change_nothing(chat, model, pk):
    await send_messages(chat, "one", "two")
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "Queued")
        for verb in ("withdraw", "send_now"):
            await page.send_json_to({"type": verb, "message": pk})
            await frames_until(page, "composer-state")

    assert await queued_texts(chat) == ["two"]


async def test_the_queue_is_limited_and_a_rejected_message_keeps_its_text(chat, model):
    await send_messages(chat, *(f"{at}" for at in range(queue.MAX_QUEUED + 1)))
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to(message("one too many"))
        await frames_until(page, "10 messages are already queued.")

    assert len(await queued_texts(chat)) == queue.MAX_QUEUED
    assert not await Message.objects.filter(text="one too many").aexists()


async def test_messages_left_by_a_crash_start_at_the_next_check(chat, person, monkeypatch):
    """The run has ended, and the process that should have started the next is gone."""
    # Other jobs have threads of their own, which would write after the test.
    job = periodic.jobs["queued messages"]
    monkeypatch.setattr(periodic, "jobs", {job.name: job})
    run = await Run.objects.acreate(topic=chat.topic, query="one", status="completed")
    await Message.objects.acreate(session=chat, author=person, run=run, client_id="one")
    await Message.objects.acreate(
        session=chat, author=person, text="6 * 7", client_id="two", place=1
    )

    tending = asyncio.create_task(periodic.run_jobs())
    await wait_for_runs(chat, 2)
    tending.cancel()

    assert "42" in (await verify_run(await Run.objects.alatest("pk"))).answer


async def test_a_queued_message_is_started_once_by_any_process(chat, model):
    await send_messages(chat, "one", "two", "three")
    await sync_to_async(Run.objects.update)(status="stopped")

    begin = database_sync_to_async(messages.dispatching._claim_next, thread_sensitive=False)
    begun = await asyncio.gather(*(begin(chat) for _ in range(8)))

    assert [m.text for m in begun if m is not None] == ["two"]
    assert await Run.objects.live().acount() == 1
    assert await queued_texts(chat) == ["three"]


async def test_a_message_sent_as_the_run_ends_is_started(chat, model, monkeypatch):
    """The run's owner looked, and nothing waited yet; the one who queues looks again."""
    monkeypatch.setattr(executor, "followers", [])
    await send_messages(chat, "one")
    run = await Run.objects.aget()
    message = await sync_to_async(messages.save)(chat, chat.user, "two", "two")
    model.let_go.set()
    await runs.wait(run)

    await messages.dispatch(chat, message)

    await wait_for_runs(chat, 2)
    assert await queued_texts(chat) == []


async def test_a_message_after_a_queued_one_is_queued_behind_it(chat, model, monkeypatch):
    # On a busy machine the end is noticed, and the second message answered, before the third.
    monkeypatch.setattr(executor, "POLL_SECONDS", 60)
    await send_messages(chat, "one", "two")
    await Run.objects.aupdate(status="completed")  # unnoticed so far

    message = await sync_to_async(messages.save)(chat, chat.user, "three", "three")

    assert message.is_queued
    assert await queued_texts(chat) == ["two", "three"]


async def test_a_queued_message_keeps_its_chosen_agent(chat, model):
    await Agent.objects.acreate(name="other", model="demo")
    await send_messages(chat, "one")
    message = await sync_to_async(messages.save)(chat, chat.user, "two", "two", "other")
    await messages.dispatch(chat, message)
    model.let_go.set()
    await wait_for_runs(chat, 2)

    assert [r.agent_name async for r in Run.objects.order_by("pk")] == ["helper", "other"]


async def test_a_queued_message_whose_agent_is_gone_has_an_error(chat, model, client):
    await Agent.objects.acreate(name="other", model="demo")
    await send_messages(chat, "one")
    await sync_to_async(messages.save)(chat, chat.user, "two", "two", "other")
    await Agent.objects.filter(name="other").aupdate(enabled=False)
    model.let_go.set()
    await wait_for_runs(chat, 1)
    await messages.answer_waiting()

    page = (await client.get(f"/chat/{chat.pk}/")).text
    assert "This agent is no longer available." in page
    assert await queued_texts(chat) == ["two"]

    await Agent.objects.filter(name="other").aupdate(enabled=True)
    await messages.answer_waiting()
    await wait_for_runs(chat, 2)


async def test_a_message_that_cannot_start_does_not_block_other_members(
    chat, model, stranger, monkeypatch
):
    await sync_to_async(members.add_member)(chat, "eve", "write")
    await send_messages(chat, "one")
    for who, text in ((stranger, "broken"), (stranger, "after it"), (chat.user, "two")):
        await sync_to_async(messages.save)(chat, who, text, text)
    _breaks(monkeypatch, "broken")
    model.let_go.set()
    await wait_for_runs(chat, 2)

    assert await conversation(chat) == ["one", "two"]
    assert await queued_texts(chat) == ["broken", "after it"]


async def test_a_page_with_an_unreadable_message_is_shown(chat, model, client, monkeypatch):
    await send_messages(chat, "one", "broken")
    _breaks(monkeypatch, "broken")
    model.let_go.set()
    await wait_for_runs(chat, 1)

    page = (await client.get(f"/chat/{chat.pk}/")).text

    assert "be answered. Remove it from the queue." in page


def _breaks(monkeypatch, text):
    """Make the product fail on this text."""
    wished = start.parse_command

    def broken(said, user):
        if said == text:
            raise RecursionError
        return wished(said, user)

    monkeypatch.setattr(start, "parse_command", broken)


async def test_deleting_a_chat_starts_none_of_its_queued_messages(chat, model, client):
    await send_messages(chat, "one", "two", "three")

    await client.post(f"/chat/{chat.pk}/delete/")
    await runs.shut_down()

    assert [run.status async for run in Run.objects.all()] == ["stopped"]
    assert len(model.requests) == 1


async def test_a_stopping_process_starts_no_messages(chat, model):
    await send_messages(chat, "one", "two")
    ending = asyncio.create_task(runs.shut_down(grace=5))
    await asyncio.sleep(0)
    model.let_go.set()
    await ending

    assert await queued_texts(chat) == ["two"]
    assert [run.status async for run in Run.objects.all()] == ["completed"]


async def test_a_page_that_missed_a_queue_notification_catches_up(chat, model, monkeypatch):
    monkeypatch.setattr("agents.web.consumers.live.IDLE_POLL_SECONDS", 0.05)
    monkeypatch.setattr("agents.web.consumers.live.LIVE_POLL_SECONDS", 0.05)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        run = await Run.objects.acreate(
            topic=chat.topic, query="one", status="waiting", user=chat.user
        )
        await Message.objects.acreate(
            session=chat, author=chat.user, text="Nobody told", client_id="b", place=1
        )
        await frames_until(page, "Nobody told")
        assert await page.receive_nothing(0.3)
        await Run.objects.filter(pk=run.pk).aupdate(status="stopped")
        await frames_until(page, 'data-live-run=""')
