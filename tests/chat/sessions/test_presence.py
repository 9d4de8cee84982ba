import asyncio

import pytest
from asgiref.sync import sync_to_async

from agents.runs import pubsub
from chat import fragments
from chat.sessions import presence
from chat.sessions.presence import Person, Presence
from chat.sharing import members
from tests.conftest import frames_until, tab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

NOBODY = 'aria-label="Viewing now" hidden'


@pytest.fixture
async def path(chat, stranger):
    """A chat shared with a second user."""
    await sync_to_async(members.add_member)(chat, "eve", "read")
    return f"/ws/chat/{chat.pk}/"


async def test_joining_and_leaving_is_visible_to_other_members(path, person, stranger):
    async with tab(person, path) as owner:
        async with tab(stranger, path) as reader:
            [*_, came] = await frames_until(owner, 'id="present"')
            [*_, there] = await frames_until(reader, 'id="present"')
        [*_, left] = await frames_until(owner, 'id="present"')

    assert 'title="eve"' in came
    assert 'title="ada"' in there
    assert NOBODY in left


async def test_several_tabs_of_a_user_count_once(path, person, stranger):
    async with tab(person, path) as owner, tab(stranger, path):
        await frames_until(owner, 'title="eve"')
        async with tab(stranger, path) as second:
            await frames_until(second, 'title="ada"')

        assert await owner.receive_nothing(0.5)


async def test_a_user_without_heartbeat_disappears(chat, path, person, monkeypatch):
    monkeypatch.setattr(presence, "HEARTBEAT_SECONDS", 0.1)
    async with tab(person, path) as owner:
        await frames_until(owner, "composer-state")
        about = {"tab": "lost", "user": 99, "name": "kim", "is_new": False}
        await pubsub.publish(chat.topic, "presence.here", **about)
        await frames_until(owner, 'title="kim"')

        await frames_until(owner, NOBODY)


async def test_an_unshared_chat_sends_no_presence(chat, person, monkeypatch):
    monkeypatch.setattr(presence, "HEARTBEAT_SECONDS", 0.05)
    told = []
    async with (
        pubsub.subscribe(chat.topic, lambda kind, facts: told.append(kind)),
        tab(person, f"/ws/chat/{chat.pk}/") as owner,
    ):
        await frames_until(owner, "composer-state")
        await asyncio.sleep(0.3)

    assert told == []


async def test_a_page_opened_before_sharing_is_present(chat, person, stranger):
    path = f"/ws/chat/{chat.pk}/"
    async with tab(person, path) as owner:
        await frames_until(owner, "composer-state")
        await sync_to_async(members.add_member)(chat, "eve", "read")
        async with tab(stranger, path) as reader:
            await frames_until(reader, 'title="ada"')
            await frames_until(owner, 'title="eve"')
            await sync_to_async(members.remove_member)(chat, stranger.pk)

            await frames_until(owner, NOBODY)


def test_initials_are_two_letters_or_one_wide_character():
    assert Person(1, "kim").initials == "KI"
    assert Person(1, "佐藤").initials == "佐"
    assert Presence().people() == ()


def test_hidden_avatars_become_a_number_with_names():
    people = [Person(pk=pk, name=name) for pk, name in enumerate(["ada", "eve", "kim"])]

    assert '<li class="others" title="eve, kim">' in fragments.render_people(people)
    assert "others" not in fragments.render_people(people[:1])
