"""Temporary chats: nowhere to be found, and gone soon after they are closed."""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from agents import runs
from agents.access import recently_deleted
from agents.models import HiddenTopic, Run, RunEvent
from agents.review.models import Rating
from chat import messages
from chat.models import ChatSession, Message
from chat.people_data import data_export
from chat.sessions import temporary, titles
from chat.sessions.listing import search, session_list
from chat.sharing import members
from tests.conftest import as_async_user, tab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def start(person):
    message = await messages.submit(None, person, "6 * 7", "a", is_temporary=True)
    await runs.wait(message.run)
    return message.session, message.run


async def test_a_temporary_chat_is_started_from_its_own_page(person_async_client):
    page = (await person_async_client.get("/?temporary=1")).text
    answer = await person_async_client.post("/chat/", {"text": "6 * 7", "temporary": "1"})

    assert 'name="temporary"' in page
    assert "This chat isn&#x27;t saved." in page or "This chat isn't saved." in page
    chat = await ChatSession.objects.aget()
    assert chat.is_temporary
    opened = (await person_async_client.get(answer.headers["Location"])).text
    assert "Save this chat" in opened


async def test_it_is_in_no_list_search_or_export(person, person_async_client):
    chat, run = await start(person)

    @sync_to_async
    def found():
        listed = session_list.read(person).every
        names = [name for name, _pieces in data_export.files(person)]
        traces = Run.objects.for_user(person).listed()
        return [*listed, *search.search(person, "6"), *traces], names

    rows, names = await found()
    assert rows == []
    assert not [name for name in names if name.startswith(("sessions/", "runs/"))]
    assert (await person_async_client.get(f"/traces/{run.pk}/")).status_code == 200


async def test_reviewers_do_not_see_it(person, django_user_model):
    _chat, run = await start(person)
    root = await sync_to_async(django_user_model.objects.create_superuser)("root")
    client = await as_async_user(root)

    assert (await client.get(f"/traces/{run.pk}/")).status_code == 404
    assert "6 * 7" not in (await client.get("/traces/")).text


async def test_anonymous_users_do_not_see_it(person):
    await start(person)

    assert not await Run.objects.unhidden(AnonymousUser()).aexists()
    assert await Run.objects.unhidden(person).aexists()


async def test_its_answers_are_not_rated_but_can_be_exported(person, person_async_client):
    chat, run = await start(person)

    sent = {"rating": "good"}
    answer = await person_async_client.post(
        f"/traces/{run.pk}/rating/", sent, headers={"HX-Request": "true"}
    )

    assert "temporary chat isn" in answer.text
    assert not await Rating.objects.aexists()
    exported = await person_async_client.get(f"/chat/{chat.pk}/export/md/")
    assert exported.status_code == 200


async def test_it_gets_no_title_and_cannot_be_shared(person, stranger):
    chat, run = await start(person)

    assert not titles.is_unnamed(chat)
    assert await sync_to_async(titles.find_unnamed)(run) is None
    await chat.arefresh_from_db()
    assert chat.title == "Temporary chat"
    with pytest.raises(members.SharingRejected):
        await sync_to_async(members.add_member)(chat, stranger.username, "read")
    with pytest.raises(members.SharingRejected):
        await sync_to_async(members.create_invitation)(chat, "read", "24")


async def erase_everything_due():
    await ChatSession.objects.filter(deleted_at__isnull=False).aupdate(
        deleted_at=timezone.now() - timedelta(seconds=91)
    )
    await sync_to_async(recently_deleted.erase_due)()


@pytest.mark.parametrize(
    ("column", "ago"),
    [("last_open_at", timedelta(minutes=6)), ("created_at", timedelta(days=2))],
)
async def test_it_is_deleted_once_closed_and_at_the_latest_after_a_day(
    person, monkeypatch, column, ago
):
    chat, _run = await start(person)
    await ChatSession.objects.aupdate(**{column: timezone.now() - ago})

    await temporary.delete_due()
    assert not await ChatSession.objects.present().aexists()
    await erase_everything_due()

    for model in (ChatSession, Message, Run, RunEvent, HiddenTopic):
        assert not await model.objects.aexists(), model


async def test_it_stays_while_a_page_is_open(person, monkeypatch):
    chat, _run = await start(person)
    await ChatSession.objects.aupdate(last_open_at=timezone.now() - timedelta(minutes=6))

    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await page.receive_from(10)
        long_ago = timezone.now() - timedelta(minutes=1)
        async with asyncio.timeout(10):
            while (await ChatSession.objects.aget()).last_open_at < long_ago:
                pass
        await temporary.delete_due()

    assert await ChatSession.objects.present().aexists()


async def test_a_kept_chat_is_an_ordinary_one(person, person_async_client):
    chat, run = await start(person)

    await person_async_client.post(f"/chat/{chat.pk}/keep/")

    await chat.arefresh_from_db()
    assert (chat.is_temporary, chat.title) == (False, "6 * 7")
    assert not await HiddenTopic.objects.aexists()
    listed = await sync_to_async(session_list.read)(person)
    assert [row.title for row in listed.recent] == ["6 * 7"]


async def test_others_cannot_keep_it(person, stranger):
    chat, _run = await start(person)
    client = await as_async_user(stranger)

    assert (await client.post(f"/chat/{chat.pk}/keep/")).status_code == 404
