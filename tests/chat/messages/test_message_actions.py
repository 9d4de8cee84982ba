"""Messages are edited, regenerated, corrected and deleted; pages stay on their branch."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist

from agents import runs
from agents.access import recently_deleted
from agents.access.recently_deleted import CannotRestore
from agents.models import Agent, GuardrailPattern, HiddenTopic, Run
from chat import messages
from chat.errors import MessageRejected
from chat.live.page_state import CLEARED
from chat.messages import message_actions, run_factory
from chat.models import BranchPosition, ChatSession, Message
from chat.sessions import batched_delete, branches
from chat.sessions.listing import search
from chat.sharing import members
from tests.chat.sessions.test_branches import heard, post
from tests.conftest import as_async_user, frames_until, tab
from tests.faults.page import read, take
from tests.language_models import amake_model

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
async def talk(chat):
    """A conversation of three messages."""
    first = await sync_to_async(post)(chat, "First")
    second = await sync_to_async(post)(chat, "Second", first)
    third = await sync_to_async(post)(chat, "Third", second)
    return first, second, third


@pytest.fixture
async def client(person):
    return await as_async_user(person)


async def path(chat, user=None):
    return await sync_to_async(branches.visible_path)(chat, user or chat.user)


async def texts(chat, user=None):
    found = await path(chat, user)
    return [(await Message.objects.aget(pk=pk)).text for pk in found]


async def watch(page, html, until):
    """Apply frames to a page until one has this text."""
    for frame in await frames_until(page, until):
        take(html, frame)


async def loaded(client, chat):
    answer = await client.get(f"/chat/{chat.pk}/")
    return read(answer.text)


def shown(html):
    """Return the ids of the messages on a page."""
    return [int(node.attributes["id"].removeprefix("message-")) for node in html.all("message")]


async def test_an_edited_message_is_a_new_branch_and_the_old_one_stays(chat, talk):
    first, second, third = talk

    new = await message_actions.edit(chat, chat.user, second.pk, "6 * 7", "e")
    await runs.wait(new.run)

    assert new.parent_id == first.pk
    assert await texts(chat) == ["First", "6 * 7"]
    assert await sync_to_async(heard)(chat, third) == ["First", "Second", "Third"]
    assert [line["content"] for line in new.run.history if line["role"] == "user"] == ["First"]


async def test_a_regenerated_answer_is_a_sibling_with_the_same_question(chat, talk):
    first, second, _ = talk

    new = await message_actions.regenerate(chat, chat.user, second.pk, "r")
    await runs.wait(new.run)

    assert (new.text, new.parent_id) == ("Second", first.pk)
    assert new.run.agent_name == "helper"
    again = await message_actions.regenerate(chat, chat.user, second.pk, "r")
    assert again.pk == new.pk  # the same request twice


async def test_an_answer_is_regenerated_by_another_model_for_once(chat, talk, agent):
    nowhere = {"provider": "compatible", "api_key": "k", "base_url": "http://127.0.0.1:9/v1"}
    for label, name in [("small", "openai/gpt-4o-mini"), ("large", "openai/gpt-4o")]:
        await amake_model(label=label, model=name, **nowhere)
    await Agent.objects.filter(pk=agent.pk).aupdate(allows_model_choice=True)
    await Run.objects.filter(pk=talk[2].run_id).aupdate(overrides={"model": "small"})

    async def answers(message, *choice):
        key = f"{message.pk}-{choice}"
        new = await message_actions.regenerate(chat, chat.user, message.pk, key, *choice)
        await runs.stop(new.run)
        return new, (await Run.objects.aget(pk=new.run_id)).model

    new, model = await answers(talk[2], "", "large")
    assert model == "large"
    assert (await answers(new))[1] == "large"  # the same again
    assert (await answers(talk[2]))[1] == "small"
    assert (await answers(talk[2], agent.name))[1] != "small"  # the agent's own
    assert (await ChatSession.objects.aget(pk=chat.pk)).options == {}

    with pytest.raises(MessageRejected, match="no longer available"):
        await answers(talk[2], "", "unknown")
    await Agent.objects.filter(pk=agent.pk).aupdate(allows_model_choice=False)
    with pytest.raises(MessageRejected, match="helper doesn't allow another model"):
        await answers(talk[2], "", "large")


async def test_switching_back_restores_the_readers_branch(chat, talk):
    first, second, third = talk
    new = await message_actions.edit(chat, chat.user, second.pk, "6 * 7", "e")
    await runs.wait(new.run)
    older = await sync_to_async(post)(chat, "Elsewhere", second)  # newer than the third

    await message_actions.show_branch(chat, chat.user, second.pk)
    assert await path(chat) == [first.pk, second.pk, third.pk]
    await message_actions.show_branch(chat, chat.user, new.pk)
    assert await path(chat) == [first.pk, new.pk]
    await message_actions.show_branch(chat, chat.user, older.pk)
    assert await path(chat) == [first.pk, second.pk, older.pk]


async def test_other_members_stay_on_their_branch(chat, talk, django_user_model):
    first, second, third = talk
    member = await sync_to_async(django_user_model.objects.create_user)("bob")
    await sync_to_async(members.add_member)(chat, "bob", "write")

    new = await message_actions.edit(chat, chat.user, second.pk, "6 * 7", "e")
    await runs.wait(new.run)
    assert await path(chat, member) == [first.pk, second.pk, third.pk]

    reply = await messages.submit(chat, member, "7 * 8", "m")
    await runs.wait(reply.run)
    assert reply.parent_id == third.pk
    assert await path(chat) == [first.pk, new.pk]


async def test_an_edit_during_an_answer_is_rejected(chat, talk):
    _, second, _ = talk
    await Run.objects.acreate(topic=chat.topic, user=chat.user, query="?", status="waiting")
    count = await Message.objects.acount()

    with pytest.raises(MessageRejected, match="An answer is being written"):
        await message_actions.edit(chat, chat.user, second.pk, "Other", "e")

    assert await Message.objects.acount() == count
    assert not await BranchPosition.objects.aexists()


async def test_only_the_author_edits_and_the_owner_deletes(chat, talk, stranger):
    _, second, third = talk
    await sync_to_async(members.add_member)(chat, stranger.username, "write")

    with pytest.raises(MessageRejected, match="your own"):
        await message_actions.edit(chat, stranger, second.pk, "Mine now", "e")
    with pytest.raises(MessageRejected, match="your own"):
        await message_actions.correct(chat, stranger, second.pk, "Mine now")
    with pytest.raises(MessageRejected, match="owner"):
        await message_actions.delete(chat, stranger, third.pk, below=False)
    await Message.objects.filter(pk=third.pk).aupdate(author=stranger)
    await message_actions.delete(chat, chat.user, third.pk, below=False)
    assert await texts(chat) == ["First", "Second"]


async def test_a_correction_changes_what_later_answers_read_but_not_the_trace(chat, talk):
    _, second, _ = talk

    await message_actions.correct(chat, chat.user, second.pk, "Second, corrected")

    await second.arefresh_from_db()
    assert second.text == "Second, corrected"
    assert second.edited_at is not None
    assert (await Run.objects.aget(pk=second.run_id)).query == "Second"
    said = await sync_to_async(run_factory.history)(chat)
    assert [line["content"] for line in said if line["role"] == "user"] == [
        *("First", "Second, corrected", "Third")
    ]


async def test_a_correction_that_a_guardrail_blocks_is_not_saved(chat, talk, agent):
    _, second, _ = talk
    await Run.objects.filter(pk=second.run_id).aupdate(agent=agent)

    await GuardrailPattern.objects.acreate(name="No tigers", pattern="tiger", action="block")

    with pytest.raises(MessageRejected, match="guardrail"):
        await message_actions.correct(chat, chat.user, second.pk, "A tiger!")

    await second.arefresh_from_db()
    assert second.text == "Second"


async def test_deleting_a_pair_keeps_the_following_messages(chat, talk):
    first, second, third = talk

    await message_actions.delete(chat, chat.user, second.pk, below=False)

    assert await path(chat) == [first.pk, third.pk]
    assert not await Run.objects.listed().filter(pk=second.run_id).aexists()
    assert await sync_to_async(heard)(chat, third) == ["First", "Third"]


async def test_deleting_everything_after_counts_hidden_branches(chat, talk):
    first, second, _ = talk
    await sync_to_async(post)(chat, "Hidden", second)

    plan = await sync_to_async(message_actions.plan_deletion)(chat, chat.user, second.pk)
    await message_actions.delete(chat, chat.user, second.pk, below=True)

    assert plan.below == 2
    assert await path(chat) == [first.pk]
    assert await Run.objects.listed().acount() == 1


async def test_deleted_messages_are_hidden_at_once_and_erased_in_batches(
    chat, talk, client, monkeypatch
):
    first, second, third = talk
    monkeypatch.setattr(batched_delete, "RUN_BATCH", 1)

    await message_actions.delete(chat, chat.user, second.pk, below=True)

    assert (await client.get(f"/traces/{third.run_id}/")).status_code == 404
    text = await client.get(f"/chat/{chat.pk}/messages/{third.pk}/text/")
    assert text.status_code == 404
    assert not await sync_to_async(search.search)(chat.user, "Third")
    assert await Message.objects.acount() == 3
    await ChatSession.objects.filter(deleted_at__isnull=False).aupdate(
        deleted_at=chat.created_at
    )
    monkeypatch.setattr(recently_deleted, "KEPT_FOR", timedelta(0))
    monkeypatch.setattr(recently_deleted, "ERASED_AFTER", timedelta(0))
    assert await sync_to_async(recently_deleted.erase_due)() == 1
    assert [message.pk async for message in Message.objects.all()] == [first.pk]
    assert await Run.objects.acount() == 1
    assert not await HiddenTopic.objects.aexists()


@sync_to_async
def undo(user, deleted, kind="message"):
    """Return whether the messages could be restored."""
    try:
        recently_deleted.restore(user, f"{kind}:{deleted.removal}")
    except (ObjectDoesNotExist, CannotRestore):
        return False
    return True


async def test_a_deleted_pair_is_restored_where_it_was(chat, talk, stranger):
    first, second, third = talk
    deleted = await message_actions.delete(chat, chat.user, second.pk, below=False)

    assert not await undo(stranger, deleted)
    assert not await undo(chat.user, deleted, kind="chat")
    assert await undo(chat.user, deleted)

    assert await path(chat) == [first.pk, second.pk, third.pk]
    assert await sync_to_async(heard)(chat, third) == ["First", "Second", "Third"]
    assert await Run.objects.listed().filter(pk=second.run_id, topic=chat.topic).aexists()
    assert await ChatSession.objects.acount() == 1
    assert not await HiddenTopic.objects.aexists()
    assert not await undo(chat.user, deleted)


async def test_what_was_sent_after_a_deletion_is_a_branch_of_what_is_restored(chat, talk):
    first, second, third = talk
    deleted = await message_actions.delete(chat, chat.user, second.pk, below=True)
    new = await sync_to_async(post)(chat, "New", first)

    await undo(chat.user, deleted)

    assert await path(chat) == [first.pk, second.pk, third.pk]
    assert await sync_to_async(heard)(chat, new) == ["First", "New"]


async def test_deleted_messages_are_restored_only_for_a_while(chat, talk, monkeypatch):
    deleted = await message_actions.delete(chat, chat.user, talk[1].pk, below=False)
    monkeypatch.setattr(recently_deleted, "KEPT_FOR", timedelta(0))

    assert not await undo(chat.user, deleted)
    assert await texts(chat) == ["First", "Third"]


async def test_a_member_cannot_delete_other_members_replies(chat, talk, stranger):
    first, second, third = talk
    await sync_to_async(members.add_member)(chat, stranger.username, "write")
    await Message.objects.filter(pk=second.pk).aupdate(author=stranger)
    member = await User.objects.aget(pk=stranger.pk)

    with pytest.raises(MessageRejected, match="Other members wrote below"):
        await message_actions.delete(chat, member, second.pk, below=True)
    page = await as_async_user(member)
    asked = (await page.get(f"/chat/{chat.pk}/messages/{second.pk}/delete/")).text
    assert 'value="below"' not in asked
    assert "Later messages stay." in asked

    assert await path(chat) == [first.pk, second.pk, third.pk]


async def test_what_others_have_queued_outlasts_a_deleted_branch(chat, talk, stranger, model):
    first, second, _third = talk
    await sync_to_async(members.add_member)(chat, stranger.username, "write")
    member = await User.objects.aget(pk=stranger.pk)
    live = await messages.submit(chat, chat.user, "slow", "a")
    mine = await messages.submit(chat, chat.user, "Mine", "b")
    theirs = await messages.submit(chat, member, "6 * 7", "c")

    await message_actions.delete(chat, chat.user, second.pk, below=True)

    stopped = await Run.objects.aget(pk=live.run_id)
    assert stopped.status == Run.Status.STOPPED
    assert not await Message.objects.filter(client_id=mine.client_id).aexists()
    sent = await Message.objects.select_related("run").aget(client_id=theirs.client_id)
    assert sent.parent_id == first.pk
    await runs.stop(sent.run)


async def test_readers_of_a_deleted_branch_see_its_sibling(chat, talk):
    first, second, third = talk
    new = await message_actions.edit(chat, chat.user, second.pk, "6 * 7", "e")
    await runs.wait(new.run)

    await message_actions.delete(chat, chat.user, new.pk, below=True)

    assert await path(chat) == [first.pk, second.pk, third.pk]


async def test_live_and_reloaded_page_are_equal_with_branches(chat, talk, client):
    _, second, third = talk
    html = await loaded(client, chat)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/?after={third.pk}") as page:
        await watch(page, html, "composer-state")
        edit = {"type": "edit", "message": second.pk, "text": "6 * 7", "client_id": "e"}
        await page.send_json_to(edit)
        await watch(page, html, 'data-live-run=""')
        assert (
            html.find("messages").shape == (await loaded(client, chat)).find("messages").shape
        )

        await page.send_json_to({"type": "show_branch", "message": second.pk})
        await watch(page, html, f'id="message-{third.pk}"')
        now = await loaded(client, chat)
        assert shown(html) == shown(now)
        assert "1/2" in html.find(f"fork-{second.pk}").text
        assert html.find("messages").shape == now.find("messages").shape

        await page.send_json_to({"type": "correct", "message": third.pk, "text": "Fourth"})
        await watch(page, html, "edited")
        await page.send_json_to(
            {"type": "delete_message", "message": second.pk, "scope": "pair"}
        )
        await watch(page, html, "hx-swap-oob")
        now = await loaded(client, chat)
        assert shown(html) == shown(now)
        assert html.find("messages").shape == now.find("messages").shape

        place = await ChatSession.objects.aget(deleted_at__isnull=False)
        undo = {"action": "restore_messages", "ids": str(place.pk)}
        await client.post("/chat/selected/", undo, headers={"HX-Request": "true"})
        await watch(page, html, f'id="message-{second.pk}"')
        assert shown(html) == [talk[0].pk, second.pk, third.pk]


async def test_a_hidden_branch_updates_only_the_counter(chat, talk, client, django_user_model):
    first, second, third = talk
    member = await sync_to_async(django_user_model.objects.create_user)("bob")
    await sync_to_async(members.add_member)(chat, "bob", "write")
    html = await loaded(client, chat)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/?after={third.pk}") as page:
        await watch(page, html, "composer-state")
        new = await message_actions.regenerate(chat, member, second.pk, "r")
        await watch(page, html, "1/2")
        await runs.wait(new.run)
        await watch(page, html, 'data-live-run=""')

        assert shown(html) == [first.pk, second.pk, third.pk]
        assert html.find(f"run-{new.run_id}") is None
        assert (
            html.find("messages").shape == (await loaded(client, chat)).find("messages").shape
        )


async def test_another_tab_follows_its_user(chat, talk, client):
    _, second, third = talk
    new = await message_actions.edit(chat, chat.user, second.pk, "6 * 7", "e")
    await runs.wait(new.run)
    html = await loaded(client, chat)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/?after={new.pk}") as page:
        await watch(page, html, "composer-state")
        await client.post(f"/chat/{chat.pk}/messages/{third.pk}/show/")
        await watch(page, html, f'id="message-{third.pk}"')

    assert html.find("messages").shape == (await loaded(client, chat)).find("messages").shape


async def test_a_reconnected_page_is_rendered_again_after_a_change(chat, talk, client):
    _, second, third = talk
    html = await loaded(client, chat)
    await message_actions.correct(chat, chat.user, second.pk, "Corrected")
    stale = f"after={third.pk}&shown={talk[0].pk}.123abc&away=100"
    async with tab(chat.user, f"/ws/chat/{chat.pk}/?{stale}") as page:
        await watch(page, html, "composer-state")

    assert "Corrected" in html.find("messages").text
    assert html.find("messages").shape == (await loaded(client, chat)).find("messages").shape


async def test_a_rejected_edit_shows_the_reason_in_the_editor(chat, talk):
    await Run.objects.acreate(topic=chat.topic, user=chat.user, query="?", status="waiting")
    async with tab(chat.user, f"/ws/chat/{chat.pk}/?after={talk[2].pk}") as page:
        await frames_until(page, "composer-state")
        edit = {"type": "edit", "message": talk[1].pk, "text": "Other", "client_id": "e"}
        await page.send_json_to(edit)
        frames = await frames_until(page, "edit-problem")

    assert "An answer is being written" in frames[-1]


async def test_forms_work_without_javascript(chat, talk, client):
    first, second, third = talk
    where = f"/chat/{chat.pk}/messages/{second.pk}"
    page = (await client.get(f"{where}/edit/")).text
    assert "Second" in page

    sent = await client.post(f"{where}/edit/", {"text": "6 * 7", "action": "send"})
    new = await Message.objects.select_related("run").alatest("pk")
    await runs.wait(new.run)
    assert sent.headers["Location"].endswith(f"?leaf={new.pk}#message-{new.pk}")
    empty = await client.post(f"{where}/edit/", {"text": " ", "action": "send"})
    assert empty.status_code == 422
    await client.post(f"{where}/edit/", {"text": "Corrected", "action": "save"})
    assert await texts(chat) == ["First", "6 * 7"]

    page = (await client.get(f"/chat/{chat.pk}/?leaf={third.pk}")).text
    assert "Corrected" in page
    assert await path(chat) == [first.pk, new.pk]
    asked = (await client.get(f"{where}/delete/")).text
    assert "Delete this and 1 later message" in asked
    await client.post(f"{where}/delete/", {"scope": "below"})
    assert await texts(chat) == ["First", "6 * 7"]


async def test_a_link_displays_a_branch_and_only_its_page_stays_there(chat, talk, client):
    """Browsers and other sites fetch links that nobody has opened."""
    first, second, third = talk
    new = await message_actions.edit(chat, chat.user, second.pk, "6 * 7", "e")
    await runs.wait(new.run)

    page = (await client.get(f"/chat/{chat.pk}/?leaf={third.pk}")).text

    assert f'id="message-{third.pk}"' in page
    assert await path(chat) == [first.pk, new.pk]
    assert f"after={third.pk}&amp;leaf={third.pk}" in page
    query = f"after={third.pk}&leaf={third.pk}".encode()
    async with tab(chat.user, f"/ws/chat/{chat.pk}/", query=query) as opened:
        frames = await frames_until(opened, "composer-state")
    assert CLEARED not in "".join(frames)
    assert await path(chat) == [first.pk, second.pk, third.pk]


async def test_without_javascript_a_message_goes_to_the_linked_branch(chat, talk, client):
    _first, second, third = talk
    new = await message_actions.edit(chat, chat.user, second.pk, "6 * 7", "e")
    await runs.wait(new.run)

    await client.post(f"/chat/{chat.pk}/messages/", {"text": "7 * 7", "leaf": third.pk})

    assert (await Message.objects.alatest("pk")).parent_id == third.pk


async def test_earlier_messages_are_those_of_the_branch(chat, client):
    first = await sync_to_async(post)(chat, "First")
    last = first
    for at in range(35):
        last = await sync_to_async(post)(chat, f"Old {at}", last)
    new = await message_actions.edit(chat, chat.user, first.pk, "6 * 7", "e")
    await runs.wait(new.run)
    await message_actions.show_branch(chat, chat.user, last.pk)

    page = read((await client.get(f"/chat/{chat.pk}/")).text)
    before = (await client.get(f"/chat/{chat.pk}/?before={shown(page)[0]}")).text

    assert len(shown(page)) == 30
    assert len(shown(read(before))) == 6
    assert new.pk not in shown(read(before))
