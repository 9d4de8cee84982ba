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


async def test_who_comes_and_who_leaves_is_seen_by_the_others(path, person, stranger):
    async with tab(person, path) as owner:
        async with tab(stranger, path) as reader:
            [*_, came] = await frames_until(owner, 'id="present"')
            [*_, there] = await frames_until(reader, 'id="present"')
        [*_, left] = await frames_until(owner, 'id="present"')

    assert 'title="eve"' in came
    assert 'title="ada"' in there
    assert NOBODY in left


async def test_several_tabs_of_one_person_are_one(path, person, stranger):
    async with tab(person, path) as owner, tab(stranger, path):
        await frames_until(owner, 'title="eve"')
        async with tab(stranger, path) as second:
            await frames_until(second, 'title="ada"')

        assert await owner.receive_nothing(0.5)


async def test_whoever_falls_silent_is_gone(chat, path, person, monkeypatch):
    monkeypatch.setattr(presence, "HEARTBEAT_SECONDS", 0.1)
    async with tab(person, path) as owner:
        await frames_until(owner, "composer-state")
        about = {"tab": "lost", "user": 99, "name": "kim", "is_new": False}
        await pubsub.publish(chat.topic, "presence.here", **about)
        await frames_until(owner, 'title="kim"')

        await frames_until(owner, NOBODY)


async def test_where_nobody_else_can_be_nothing_is_told(chat, person, monkeypatch):
    monkeypatch.setattr(presence, "HEARTBEAT_SECONDS", 0.05)
    told = []
    async with (
        pubsub.subscribe(chat.topic, lambda kind, facts: told.append(kind)),
        tab(person, f"/ws/chat/{chat.pk}/") as owner,
    ):
        await frames_until(owner, "composer-state")
        await asyncio.sleep(0.3)

    assert told == []


async def test_a_page_that_was_open_before_it_was_shared_is_seen_as_well(
    chat, person, stranger
):
    path = f"/ws/chat/{chat.pk}/"
    async with tab(person, path) as owner:
        await frames_until(owner, "composer-state")
        await sync_to_async(members.add_member)(chat, "eve", "read")
        async with tab(stranger, path) as reader:
            await frames_until(reader, 'title="ada"')
            await frames_until(owner, 'title="eve"')
            await sync_to_async(members.remove_member)(chat, stranger.pk)

            await frames_until(owner, NOBODY)


def test_a_name_is_two_letters_or_one_that_is_as_wide():
    assert Person(1, "kim").initials == "KI"
    assert Person(1, "佐藤").initials == "佐"
    assert Presence().people() == ()


def test_where_there_is_little_room_the_others_are_a_number_with_their_names():
    people = [Person(pk=pk, name=name) for pk, name in enumerate(["ada", "eve", "kim"])]

    assert '<li class="others" title="eve, kim">' in fragments.render_people(people)
    assert "others" not in fragments.render_people(people[:1])
