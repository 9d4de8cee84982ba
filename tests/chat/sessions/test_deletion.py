"""Deleted chats: gone at once, restorable for a while, then erased."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import timezone

from agents import runs
from agents.access import recently_deleted
from agents.models import HiddenTopic, Run
from chat import messages
from chat.models import ChatSession
from chat.sessions.listing import session_list
from chat.sharing import members
from tests.conftest import tab

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
def chats(person):
    return [ChatSession.objects.create(user=person, title=t) for t in ("A", "B", "C")]


def browser(user):
    client = AsyncClient()
    client.force_login(user)
    return client


@pytest.fixture
def post(person):
    client = browser(person)

    async def post(url, current="/", **values):
        here = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{current}"}
        return await client.post(url, values, headers=here)

    return post


@sync_to_async
def listed(user):
    return [row.title for row in session_list.read(user).recent]


@sync_to_async
def seen_runs(user):
    return list(Run.objects.for_user(user))


def notice(response):
    return json.loads(response["HX-Trigger"])["chats:notice"]


async def test_several_chats_are_deleted_at_once_and_restored(post, person, chats):
    about = {"user": person, "topic": chats[0].topic, "status": "completed"}
    run = await Run.objects.acreate(query="q", **about)

    told = notice(await post("/chat/selected/delete/", ids=f"{chats[0].pk},{chats[1].pk}"))

    assert (told["text"], told["undo"]) == ("2 chats deleted.", "restore")
    assert await listed(person) == ["C"]
    assert await seen_runs(person) == []
    assert await sync_to_async(recently_deleted.erase_due)() == 0

    ids = ",".join(map(str, told["ids"]))
    await post("/chat/selected/", action="restore", ids=ids)

    assert await listed(person) == ["C", "B", "A"]
    assert await seen_runs(person) == [run]
    assert not await HiddenTopic.objects.aexists()


async def test_a_deletion_that_is_due_can_no_longer_be_undone(post, person, chats):
    await post(f"/chat/{chats[0].pk}/delete/")
    await ChatSession.objects.filter(pk=chats[0].pk).aupdate(
        deleted_at=timezone.now() - timedelta(days=30)
    )

    response = await post("/chat/selected/", action="restore", ids=str(chats[0].pk))

    assert "too late" in notice(response)["text"]
    assert await listed(person) == ["C", "B"]


async def test_only_own_chats_are_deleted(post, person, stranger, chats):
    theirs = await ChatSession.objects.acreate(user=stranger, title="Theirs")
    await sync_to_async(members.add_member)(theirs, person.username, "write")

    response = await post("/chat/selected/delete/", ids=f"{chats[0].pk},{theirs.pk}")

    assert "1 chat belongs to another user" in notice(response)["text"]
    assert await ChatSession.objects.present().filter(pk=theirs.pk).aexists()


async def test_deleting_the_open_chat_redirects_to_a_new_one(post, chats):
    here = f"/chat/{chats[0].pk}/"

    response = await post("/chat/selected/delete/", here, ids=str(chats[0].pk))

    assert response["HX-Redirect"] == "/"


async def test_a_deleted_chat_disappears_everywhere_at_once(post, person, stranger, chats):
    await sync_to_async(members.add_member)(chats[0], stranger.username, "write")
    token = await sync_to_async(members.create_invitation)(chats[0], "read", "24")
    ended = {"user": person, "status": "completed"}
    run = await Run.objects.acreate(topic=chats[0].topic, query="q", **ended)
    rerun = await Run.objects.acreate(topic="rerun.1", origin=run, origin_step=1, **ended)
    paths = [f"/chat/{chats[0].pk}/", f"/traces/{run.pk}/", f"/traces/{rerun.pk}/"]
    async with tab(stranger, f"/ws/chat/{chats[0].pk}/") as page:
        await post(f"/chat/{chats[0].pk}/delete/")
        while (output := await page.receive_output(10))["type"] != "websocket.close":
            pass
    assert output["code"] == 4403

    for user in (person, stranger):
        client = await sync_to_async(browser)(user)
        for path in [*paths, f"/join/{token}/"]:
            assert (await client.get(path)).status_code == 404, path


async def test_deleting_stops_the_run_and_starts_no_queued_message(post, person, chats, model):
    first = await messages.submit(chats[0], person, "6 * 7", "a")
    await messages.submit(chats[0], person, "7 * 8", "b")

    await post(f"/chat/{chats[0].pk}/delete/")
    await runs.wait(first.run)
    await messages.answer_waiting()

    assert await Run.objects.acount() == 1
    assert not await Run.objects.live().aexists()


async def test_due_deletions_happen_without_any_browser(post, person, chats):
    await post(f"/chat/{chats[0].pk}/delete/")
    await ChatSession.objects.filter(pk=chats[0].pk).aupdate(
        deleted_at=timezone.now() - timedelta(days=31)
    )

    assert await sync_to_async(recently_deleted.erase_due)() == 1

    assert not await ChatSession.objects.filter(pk=chats[0].pk).aexists()
    assert not await HiddenTopic.objects.aexists()
