"""One person has a limited number of sockets, and holds nobody else up with them."""

import pytest

from agents import connections, consumers, greetings
from chat.models import ChatSession
from tests.conftest import frames_until, tab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "workshop"),
]


async def closed(page):
    answer = await page.receive_output(5)
    assert answer["type"] == "websocket.close"
    return answer["code"]


async def test_a_person_has_so_many_sockets_and_the_next_is_closed_with_a_code_of_its_own(
    chat, settings, django_user_model
):
    settings.PERSON_SOCKETS = 2
    other = await django_user_model.objects.acreate(username="other")
    theirs = await ChatSession.objects.acreate(user=other, title="Theirs")
    path = f"/ws/chat/{chat.pk}/"
    async with tab(chat.user, path) as one, tab(chat.user, path) as two:
        for page in (one, two):
            await frames_until(page, "composer-state")
        async with tab(chat.user, path) as third:
            assert await closed(third) == consumers.TOO_MANY
        async with tab(other, f"/ws/chat/{theirs.pk}/") as page:
            await frames_until(page, "composer-state")
    async with tab(chat.user, path) as page:
        await frames_until(page, "composer-state")
    assert connections._open == {}


async def test_a_page_that_comes_back_takes_the_place_of_its_lost_socket(chat, settings):
    settings.PERSON_SOCKETS = 1
    path, name = f"/ws/chat/{chat.pk}/", b"page=abc"
    async with tab(chat.user, path, query=name) as lost:
        await frames_until(lost, "composer-state")
        async with tab(chat.user, path, query=name) as back:
            await frames_until(back, "composer-state")
            assert await closed(lost) == consumers.REPLACED


async def test_where_too_many_come_at_once_a_page_is_told_to_come_again(chat, monkeypatch):
    monkeypatch.setattr(greetings, "MOST_WAITING", 0)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        assert await closed(page) == consumers.TRY_AGAIN
