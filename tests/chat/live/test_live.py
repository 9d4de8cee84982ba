import asyncio
import inspect
import re
import threading
from traceback import walk_stack
from unittest.mock import AsyncMock

import pytest
from asgiref.sync import sync_to_async
from autobahn.exception import Disconnected
from channels.consumer import AsyncConsumer
from django.conf import settings

from agents import runs
from agents.engine.events import EventFactory, EventType
from agents.models import Run
from agents.runs import event_store, event_writer, pubsub
from agents.web import consumers
from agents.web.consumers import RunConsumer, live
from agents.web.library.live import CollectionConsumer
from agents.web.presentation.live_run import LiveRunView
from agents.web.presentation.markdown import StreamingMarkdown
from chat import fragments, messages
from chat.live.consumers import ChatConsumer
from chat.live.page_state import Conversation
from chat.messages import submission
from chat.models import ChatSession, Message
from chat.sessions import titles
from tests.conftest import ORIGIN, frames_until, tab
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

FINISHED = 'class="run" data-status="completed"'


async def test_a_question_is_answered_live_step_by_step(person):
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to(
            {"type": "message", "text": "What is 12.5% of 3480?", "client_id": "a"}
        )
        frames = await frames_until(page, FINISHED)

    shown = "".join(frames)
    assert 'hx-swap-oob="beforeend:#messages"' in shown
    assert "calculator: 3480 * 12.5 / 100" in shown
    assert "<strong>435</strong>" in frames[-1]


async def test_a_run_continues_after_its_tab_is_closed(person):
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await frames_until(page, "run-")

    run = await Run.objects.aget()
    await runs.wait(run)

    await run.arefresh_from_db()
    assert run.status == "completed"
    assert "42" in run.answer


async def test_two_tabs_show_the_same(person):
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    path = f"/ws/chat/{chat.pk}/"
    async with tab(person, path) as one, tab(person, path) as other:
        for page in (one, other):
            await page.receive_from()
        await one.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        mine = await frames_until(one, FINISHED)
        theirs = await frames_until(other, FINISHED)

    assert mine[-1] == theirs[-1]
    assert "42" in mine[-1]


async def test_a_reconnected_page_gets_hundreds_of_missed_events_once(chat):
    run = await sync_to_async(runs.prepare)(query="Talk", topic=chat.topic, user=chat.user)
    message = await chat.messages.acreate(author=chat.user, run=run, client_id="a")
    stamp, keep = EventFactory("helper"), sync_to_async(event_store.save)
    words = [stamp(EventType.DELTA, content=f"word{at} ", step=1) for at in range(701)]
    path, query = f"/ws/chat/{chat.pk}/", f"after={message.pk}".encode()
    await keep([(run.pk, word) for word in words[:1]])
    async with tab(chat.user, path, query=query) as page:
        await frames_until(page, "word0")

    await keep([(run.pk, word) for word in words[1:700]])
    async with tab(chat.user, path, query=query) as page:
        caught_up = (await frames_until(page, "composer-state"))[0]
        await keep([(run.pk, words[700])])
        await event_writer.publish(run, [words[700]])
        [*_, new] = await frames_until(page, "word700")

    assert [caught_up.count(f"word{at} ") for at in (0, 350, 698)] == [1, 1, 1]
    assert "<section" not in new


def test_a_lagging_page_refreshes_once_after_its_notifications():
    look, first, second = (
        (pubsub.REFRESH_KIND, {}),
        *(("run.events", {"run": 1, "events": [{"seq": seq}]}) for seq in (1, 2)),
    )
    both = ("run.events", {"run": 1, "events": [{"seq": 1}, {"seq": 2}]})

    assert live.coalesce([look, first, look, second]) == [both, look]


CONSUMERS = [ChatConsumer, RunConsumer, CollectionConsumer]


def test_every_notification_with_a_handler_is_published():
    """A kind that is misspelled on either side fails here."""
    tables = {inspect.getfile(consumer) for consumer in (live.LiveConsumer, *CONSUMERS)}
    roots = [settings.BASE_DIR / name for name in ("agents", "chat")]
    sources = [path for root in roots for path in root.rglob("*.py")]
    published = "".join(path.read_text() for path in sources if str(path) not in tables)

    handled = {kind for consumer in CONSUMERS for kind in consumer.handlers}
    assert [kind for kind in sorted(handled) if f'"{kind}"' not in published] == []


async def test_a_page_ignores_notifications_without_a_handler(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        await pubsub.publish(chat.topic, "tea.ready")
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await frames_until(page, FINISHED)


def test_a_handler_that_a_page_overrides_is_the_one_in_its_table():
    for consumer_class in CONSUMERS:
        for kind, handler in consumer_class.handlers.items():
            assert getattr(consumer_class, handler.__name__) is handler, kind


async def test_a_message_sent_twice_is_saved_once(person):
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        for _ in range(2):
            await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await frames_until(page, FINISHED)

    assert await Message.objects.acount() == 1
    assert await Run.objects.acount() == 1


async def test_a_message_passes_at_most_eight_functions_to_its_row(person, monkeypatch):
    passed, insert, loop = [], submission.insert, asyncio.get_running_loop()

    def noting(message):
        tasks = [_awaited(task.get_coro()) for task in asyncio.all_tasks(loop)]
        ways = [way for way in map(_own, tasks) if way & {"ChatConsumer.receive", "run_urgent"}]
        stack = [frame.f_code for frame, _ in walk_stack(inspect.currentframe())]
        passed.append(_own(stack).union(*ways) - NOT_COUNTED)
        insert(message)

    monkeypatch.setattr(submission, "insert", noting)
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await frames_until(page, FINISHED)

    assert passed[0] >= {"ChatConsumer.receive", "run_urgent", "save"}
    assert len(passed[0]) <= 8, passed[0]


# Once per connection, and a decorator.
NOT_COUNTED = {
    "OriginValidator.__call__",
    "ProgramSockets.__call__",
    "LiveConsumer.__call__",
    "retry_on_conflict.<locals>.wrapped",
}


def _awaited(coroutine):
    while (code := getattr(coroutine, "cr_code", None)) is not None:
        yield code
        coroutine = coroutine.cr_await


def _own(codes):
    """Names of the functions that are the product's."""
    roots = tuple(str(settings.BASE_DIR / part) for part in ("agents", "chat", "project"))
    return {code.co_qualname for code in codes if code.co_filename.startswith(roots)}


async def test_a_page_that_disconnects_while_sending_is_not_an_error(person, monkeypatch):
    async def gone(*frame, **more):
        raise Disconnected("Attempt to send on a closed protocol")

    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await page.receive_from()
        monkeypatch.setattr(AsyncConsumer, "send", gone)
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await page.wait(5)

        assert page.future.done()
        assert page.future.exception() is None


async def test_an_idle_page_notices_that_a_run_ended(person, monkeypatch):
    """Every notice but the first is lost, and the page had just looked at nothing."""
    monkeypatch.setattr(live, "LIVE_POLL_SECONDS", 0.1)
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        whole = pubsub.publish

        async def publish(topic, kind, **facts):
            if kind == "message.added":
                await whole(topic, kind, **facts)

        monkeypatch.setattr(pubsub, "publish", publish)
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        frames = await frames_until(page, FINISHED)

    assert "42" in frames[-1]


async def test_a_message_announced_after_its_run_is_shown_completely(person, monkeypatch):
    """As with a fast worker whose notifications are all lost."""
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await page.receive_from()  # it has looked, and there was nothing
        message = await sync_to_async(messages.save)(chat, person, "6 * 7", "a")
        with monkeypatch.context() as lost:
            lost.setattr(pubsub, "publish", AsyncMock())
            await messages.dispatch(chat, message)
            while await Run.objects.live().aexists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await runs.wait(message.run)
        await pubsub.publish(
            chat.topic, "message.added", message=message.pk, run=message.run_id
        )
        frames = await frames_until(page, FINISHED)

    assert "calculator: 6 * 7" in frames[-1]
    assert "42" in frames[-1]


@pytest.fixture
def untold(monkeypatch):
    """Lose all notifications."""
    monkeypatch.setattr(pubsub, "publish", AsyncMock())


@pytest.mark.usefixtures("untold")
async def test_the_sender_sees_the_message_without_a_notification(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.receive_from()
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        frame = await page.receive_from()

    run = await Run.objects.aget()
    assert 'hx-swap-oob="beforeend:#messages"' in frame
    assert f'id="run-{run.pk}"' in frame
    assert f'data-live-run="{run.pk}"' in frame


async def test_a_message_that_cannot_be_shown_at_once_is_announced(chat, monkeypatch, caplog):
    shown, drawn = fragments.render_new_message, []

    def breaks_once(message, user):
        drawn.append(message)
        return shown(message, user) if drawn[1:] else 1 / 0

    monkeypatch.setattr(fragments, "render_new_message", breaks_once)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.receive_from()
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        frames = await frames_until(page, FINISHED)

    assert "".join(frames).count('hx-swap-oob="beforeend:#messages"') == 1
    assert 'class="notice"' not in "".join(frames)
    assert "Can't render message" in caplog.text


async def test_a_message_sent_while_catching_up_is_shown_once(chat, monkeypatch):
    held, caught_up = asyncio.Event(), Conversation.catch_up

    async def late(*about):
        await held.wait()
        return await caught_up(*about)

    monkeypatch.setattr(Conversation, "catch_up", late)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        first = await page.receive_from()
        held.set()
        frames = await frames_until(page, FINISHED)

    assert 'data-acknowledged="a"' in first
    assert "".join(frames).count("<article") == 1


async def test_messages_of_another_tab_are_shown_in_order(chat, monkeypatch):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.receive_from()
        with monkeypatch.context() as lost:
            lost.setattr(pubsub, "publish", AsyncMock())
            first = await sync_to_async(messages.save)(chat, chat.user, "1 + 1", "a")
            await messages.dispatch(chat, first)
            await runs.wait(first.run)
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "b"})
        frames = await frames_until(page, FINISHED)

    shown = [line for line in "".join(frames).splitlines() if "<article" in line]
    assert ['"a"' in shown[0], '"b"' in shown[1]] == [True, True]


def test_a_run_that_ended_elsewhere_is_updated_when_one_ends_here(chat):
    other = ChatSession.objects.create(user=chat.user, title="Main menu")
    run = runs.prepare(query="?", topic=other.topic, user=chat.user)
    around = fragments.SessionChrome(chat.user)
    before = around.changes(chat)

    Run.objects.filter(pk=run.pk).update(status="completed")
    after = around.run_status_frames(chat)

    assert before.count("running-dot") == 1
    assert f'id="session-{other.pk}"' in after
    assert f'id="session-{chat.pk}"' not in after
    assert "running-dot" not in after


def test_a_chat_renamed_elsewhere_is_updated_with_the_next_message(chat):
    other = ChatSession.objects.create(user=chat.user, title="Main menu")
    around = fragments.SessionChrome(chat.user)
    around.changes(chat)

    titles.rename(other, "Far away")

    assert "Far away" in around.changes(chat)
    assert "Far away" not in around.changes(chat)


def test_the_start_of_a_run_is_shown_as_saved(chat):
    """Without reading the run: what it is by then is known."""
    run = messages.save(chat, chat.user, "6 * 7", "a").run
    stamp, request = EventFactory(run.agent_name), {"model": run.model}
    began = stamp(EventType.RUN_STARTED, query=run.query, route="direct")
    step = stamp(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request=request)
    watched = LiveRunView(run.pk)
    watched.begin(run)

    event_store.save([(run.pk, event) for event in (began, step)])
    frames = watched.changes([event.to_dict() for event in (began, step)])

    shown, read = _but_for_the_clock(frames), _but_for_the_clock(LiveRunView(run.pk).snapshot())
    head, facts, _rest = re.split("(?=<p id=|<ol )", shown, maxsplit=2)
    assert head in read
    assert facts.strip() in read
    assert shown.partition('-steps">')[2].removesuffix("</ol>") in read


def _but_for_the_clock(html):
    html = re.sub(r'data-elapsed-ms="\d+">[^<]*', "", html)
    return re.sub(r'x="[\d.]+" width="[\d.]+"', "", html)


async def test_a_saved_message_is_shown_even_if_its_run_cannot_start(chat, monkeypatch):
    monkeypatch.setattr(
        messages.submission, "dispatch", AsyncMock(side_effect=RuntimeError("no thread"))
    )
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.receive_from()
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        frames = await frames_until(page, 'class="notice"')

    assert sum('hx-swap-oob="beforeend:#messages"' in frame for frame in frames) == 1


def test_a_run_started_elsewhere_is_shown_after_the_local_run_ends(chat):
    other = ChatSession.objects.create(user=chat.user, title="Main menu")
    around = fragments.SessionChrome(chat.user)
    around.changes(chat)
    runs.prepare(query="?", topic=other.topic, user=chat.user)
    here = runs.prepare(query="?", topic=chat.topic, user=chat.user)

    begun = around.run_started_frames(chat, here)
    Run.objects.filter(pk=here.pk).update(status="completed")
    ended = around.run_status_frames(chat)

    assert f'data-live-run="{here.pk}"' in begun
    assert [html.count("running-dot") for html in (begun, ended)] == [1, 1]
    assert f'id="session-{other.pk}"' in ended


async def test_a_long_open_block_is_rendered_in_a_thread(monkeypatch):
    """Else a model that writes `![` over and over holds up everybody."""
    consumer, threads = consumers.LiveConsumer(), []
    consumer.lock, consumer.send = asyncio.Lock(), AsyncMock()
    delta_frames = LiveRunView.delta_frames

    def noted(watched, events):
        threads.append(threading.get_ident())
        return delta_frames(watched, events)

    monkeypatch.setattr(LiveRunView, "delta_frames", noted)
    for text in ("Some words, ", "![" * 4_000):
        event = {"type": EventType.DELTA, "data": {"content": "and more", "step": 1}, "seq": 1}
        consumer.live_views = {1: LiveRunView(1, markdown=StreamingMarkdown(text, "answer-1"))}
        await consumer.run_events({"run": 1, "events": [event]})

    here = threading.get_ident()
    assert [thread == here for thread in threads] == [True, False]


def test_a_long_open_block_is_sent_once_and_then_only_its_additions():
    watched, sent = LiveRunView(1), []
    for seq in range(1, 400):
        data = {"content": "[word] " * 10, "step": 1}
        sent.append(
            len(watched.delta_frames([{"type": EventType.DELTA, "data": data, "seq": seq}]))
        )

    assert sum(sent) < 10 * 400 * len("[word] " * 10)
    assert 'hx-swap-oob="beforeend:#answer-1-rest"' in watched._tail()


@pytest.mark.parametrize(
    ("query", "headers", "shown"),
    one_in(
        4,
        [
            (b"language=ja", [], "完了"),
            (b"language=ja", [(b"accept-language", b"en")], "完了"),
            (b"", [(b"accept-language", b"ja,en;q=0.5")], "完了"),
            (b"language=xx", [], "Copy"),
        ],
    ),
)
async def test_frames_are_in_the_language_of_the_page(person, query, headers, shown):
    """Not every browser sends Accept-Language with a socket's handshake, so the page does."""
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    path, asked = f"/ws/chat/{chat.pk}/", {"text": "2 + 3", "client_id": "a"}
    async with tab(person, path, headers=(ORIGIN, *headers), query=query) as page:
        await page.send_json_to({"type": "message", **asked})
        frames = await frames_until(page, FINISHED)

    assert shown in frames[-1]
