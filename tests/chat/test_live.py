import pytest
from autobahn.exception import Disconnected
from channels.generic.websocket import AsyncWebsocketConsumer

from agents import consumers, live, runs
from agents.models import Run
from chat.models import ChatSession, Message
from tests.conftest import frames_until, tab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "workshop"),
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


async def test_a_run_outlives_the_tab_that_started_it(person):
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
        await one.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        mine = await frames_until(one, FINISHED)
        theirs = await frames_until(other, FINISHED)

    assert mine[-1] == theirs[-1]
    assert "42" in mine[-1]


async def test_a_message_sent_twice_is_one_message(person):
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        for _ in range(2):
            await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await frames_until(page, FINISHED)

    assert await Message.objects.acount() == 1
    assert await Run.objects.acount() == 1


async def test_a_page_that_leaves_while_it_is_told_something_is_no_failure(person, monkeypatch):
    async def gone(*frame, **more):
        raise Disconnected("Attempt to send on a closed protocol")

    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await page.receive_from()
        monkeypatch.setattr(AsyncWebsocketConsumer, "send", gone)
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        await page.wait(5)

        assert page.future.done()
        assert page.future.exception() is None


async def test_a_page_that_was_idle_when_a_run_began_finds_out_that_it_ended(
    person, monkeypatch
):
    """Every notice but the first is lost, and the page had just looked at nothing."""
    monkeypatch.setattr(consumers, "LOOK_WHILE_LIVE", 0.1)
    chat = await ChatSession.objects.acreate(user=person, title="Sums")
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        whole = live.publish

        async def publish(topic, kind, **facts):
            if kind == "message.added":
                await whole(topic, kind, **facts)

        monkeypatch.setattr(live, "publish", publish)
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        frames = await frames_until(page, FINISHED)

    assert "42" in frames[-1]
