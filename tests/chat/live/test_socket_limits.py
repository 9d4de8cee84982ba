"""Sockets per user are limited, and don't affect others."""

import asyncio
from contextlib import AsyncExitStack, suppress

import pytest
from asgiref.sync import sync_to_async
from channels.exceptions import StopConsumer

from agents.runs import close_codes
from agents.web import consumers
from agents.web.consumers import connections, first_frames
from chat.models import ChatSession
from tests.chat.live.test_long_chats import create_messages
from tests.conftest import frames_until, tab

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def close_code(page):
    answer = await page.receive_output(5)
    assert answer["type"] == "websocket.close"
    return answer["code"]


async def test_the_sockets_of_a_user_are_limited_with_their_own_close_code(
    chat, settings, django_user_model
):
    settings.USER_SOCKETS = 2
    other = await django_user_model.objects.acreate(username="other")
    theirs = await ChatSession.objects.acreate(user=other, title="Theirs")
    path = f"/ws/chat/{chat.pk}/"
    async with tab(chat.user, path) as one, tab(chat.user, path) as two:
        for page in (one, two):
            await frames_until(page, "composer-state")
        async with tab(chat.user, path) as third:
            assert await close_code(third) == close_codes.TOO_MANY
        async with tab(other, f"/ws/chat/{theirs.pk}/") as page:
            await frames_until(page, "composer-state")
    async with tab(chat.user, path) as page:
        await frames_until(page, "composer-state")
    assert connections._open == {}


async def test_a_reconnected_page_replaces_its_lost_socket(chat, settings):
    settings.USER_SOCKETS = 1
    path, name = f"/ws/chat/{chat.pk}/", b"page=abc"
    async with tab(chat.user, path, query=name) as lost:
        await frames_until(lost, "composer-state")
        async with tab(chat.user, path, query=name) as back:
            await frames_until(back, "composer-state")
            assert await close_code(lost) == close_codes.REPLACED


async def test_with_too_many_connections_a_page_is_told_to_retry(chat, monkeypatch):
    monkeypatch.setattr(first_frames, "MAX_WAITING", 0)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        assert await close_code(page) == close_codes.TRY_AGAIN_LATER


async def test_a_member_removed_while_connecting_sees_nothing_of_the_chat(
    chat, django_user_model
):
    guest = await django_user_model.objects.acreate(username="guest")
    await sync_to_async(chat.members.create)(user=guest, topic=chat.topic)
    await sync_to_async(create_messages)(chat, 1, text="For members only")
    async with first_frames.acquire_slot(), first_frames.acquire_slot():
        tab_of = tab(guest, f"/ws/chat/{chat.pk}/")
        page = await tab_of.__aenter__()
        await _until(lambda: first_frames._queue().waiting)
        await chat.members.filter(user=guest).adelete()
    assert await close_code(page) == close_codes.FORBIDDEN
    await tab_of.__aexit__(None, None, None)


async def test_a_user_who_lost_access_sees_nothing_of_the_run(chat, django_user_model):
    guest = await django_user_model.objects.acreate(username="guest")
    await sync_to_async(chat.members.create)(user=guest, topic=chat.topic)
    [message] = await sync_to_async(create_messages)(chat, 1, text="For members only")
    async with first_frames.acquire_slot(), first_frames.acquire_slot():
        tab_of = tab(guest, f"/ws/runs/{message.run_id}/")
        page = await tab_of.__aenter__()
        await _until(lambda: first_frames._queue().waiting)
        await chat.members.filter(user=guest).adelete()
    assert await close_code(page) == close_codes.NOT_FOUND
    await tab_of.__aexit__(None, None, None)


async def _until(is_so):
    for _ in range(500):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


def test_a_replaced_socket_that_ends_late_does_not_change_the_count(settings):
    settings.USER_SOCKETS = 1
    ours = connections.track_socket(7, "page", lambda: None)
    newer, later = (
        connections.track_socket(7, "page", lambda: None),
        connections.track_socket(7, "b", print),
    )
    ours.__enter__()
    newer.__enter__()
    newer.__exit__(None, None, None)
    later.__enter__()
    ours.__exit__(None, None, None)  # replaced long ago
    with pytest.raises(connections.TooManySockets), connections.track_socket(7, "c", print):
        pass
    later.__exit__(None, None, None)
    assert connections._open == {}


async def test_a_page_can_replace_a_socket_that_is_just_ending():
    consumer = consumers.LiveConsumer()
    consumer.stack = AsyncExitStack()
    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as consumer.tasks:
            consumer.tasks.create_task(_fails())

    consumer._on_replaced()
    assert not consumer.stack._exit_callbacks  # no task was left to cancel


async def _fails():
    raise StopConsumer
