"""Shared chats: who gets in, sees, writes and decides."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.access import audit
from agents.models import AgentStep, Approval, AuditEntry, Membership, Run
from agents.runs import pubsub
from chat import messages
from chat.models import ChatSession, Invitation, Message
from chat.sessions import deletion
from chat.sharing import members
from tests.conftest import as_user, frames_until, tab
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

FINISHED = 'class="run" data-status="completed"'
MAIL = "ada@example.com"


@pytest.fixture
def run(chat, person):
    """The owner's finished run, with personal data and one step."""
    run = Run.objects.create(
        user=person,
        topic=chat.topic,
        agent_name="helper",
        query=f"Who is {MAIL}?",
        answer="**Ada**",
        status="completed",
        ended_at=timezone.now(),
    )
    AgentStep.objects.create(
        run=run, number=1, kind="thought", status="done", started_at=run.started_at
    )
    Message.objects.create(session=chat, author=person, run=run, text=run.query, client_id="a")
    return run


@pytest.fixture
def question(chat, person):
    """A call that waits for approval, in the owner's run."""
    run = Run.objects.create(user=person, topic=chat.topic, query="?", status="waiting")
    Message.objects.create(session=chat, author=person, run=run, text="?", client_id="q")
    return Approval.objects.create(
        run=run, step=1, call_id="c", tool="shop", arguments="{}", asked_at=run.started_at
    )


def member_client(chat, user, right):
    members.add_member(chat, user.get_username(), right)
    return as_user(user)


def page(client, chat):
    return client.get(f"/chat/{chat.pk}/")


def test_a_reader_sees_the_whole_chat_without_a_composer(chat, run, stranger):
    shown = page(member_client(chat, stranger, "read"), chat).text

    assert MAIL in shown
    assert "<strong>Ada</strong>" in shown
    assert 'aria-hidden="true">ada' in shown
    assert "You have read-only access." in shown
    assert 'id="ask"' not in shown
    assert 'class="rating"' not in shown


def test_a_shared_chat_is_listed_with_its_owner(chat, run, stranger, person):
    client = member_client(chat, stranger, "read")

    theirs = client.get("/chat/sessions/").text
    found = client.get("/chat/sessions/?q=Sums").text
    own = as_user(person).get("/chat/sessions/").text

    assert "Sums" in theirs
    assert "Sums" in found
    assert 'aria-hidden="true">ada</span>' in theirs
    assert 'aria-hidden="true">ada</span>' in found
    assert "data-others" in theirs
    assert 'aria-hidden="true">ada</span>' not in own
    assert "data-others" not in own


@pytest.mark.parametrize("right", ["read", "write"])
def test_only_the_owner_renames_deletes_and_shares(right, chat, stranger):
    client = member_client(chat, stranger, right)
    link = Invitation.objects.create(session=chat, digest="d", expires_at=timezone.now())

    for path in ["rename", "delete", "people", "links", f"links/{link.pk}/withdraw"]:
        answer = client.post(f"/chat/{chat.pk}/{path}/", {"title": "x", "name": "root"})
        assert answer.status_code == 404, path
    removed = client.post(f"/chat/{chat.pk}/people/{chat.user_id}/remove/")

    assert removed.status_code == 404
    assert ChatSession.objects.get().title == "Sums"


def test_a_reader_cannot_send_or_stop_by_any_route(chat, question, stranger):
    client = member_client(chat, stranger, "read")

    said = client.post(f"/chat/{chat.pk}/messages/", {"text": "6 * 7"})
    stopped = client.post(f"/chat/{chat.pk}/stop/")

    assert said.status_code == 422
    assert "You have read-only access to this chat." in said.text
    assert stopped.status_code == 404
    assert Message.objects.count() == 1
    assert Run.objects.get().is_live


async def test_every_frame_of_a_reader_is_rejected(chat, question, stranger):
    await sync_to_async(members.add_member)(chat, "eve", "read")
    frames = [
        {"type": "message", "text": "6 * 7", "client_id": "b"},
        {"type": "stop", "run": question.run_id},
        {"type": "send_now", "message": 1},
        {"type": "withdraw", "message": 1},
    ]
    async with tab(stranger, f"/ws/chat/{chat.pk}/") as socket:
        await frames_until(socket, "composer-state")
        for frame in frames:
            await socket.send_json_to(frame)
            await frames_until(socket, "read-only access to this chat")

    assert await Message.objects.acount() == 1
    assert (await Run.objects.aget()).is_live


async def test_a_writers_message_appears_live_under_their_name(chat, stranger, person):
    await sync_to_async(members.add_member)(chat, "eve", "write")
    path = f"/ws/chat/{chat.pk}/"
    async with tab(person, path) as owner, tab(stranger, path) as writer:
        await writer.send_json_to({"type": "message", "text": "6 * 7", "client_id": "b"})
        seen = "".join(await frames_until(owner, FINISHED))
        own = "".join(await frames_until(writer, FINISHED))

    assert 'aria-hidden="true">eve' in seen
    assert 'class="author"' not in own
    assert 'class="rating' in own
    assert 'class="rating' not in seen
    run = await Run.objects.aget()
    assert run.user_id == stranger.pk
    assert await sync_to_async(lambda: Run.objects.for_user(person).get())() == run


def test_members_see_the_trace_unmasked_and_the_view_is_audited(chat, run, stranger):
    client = member_client(chat, stranger, "read")

    trace = client.get(f"/traces/{run.pk}/")
    listed = client.get("/traces/").text

    assert MAIL in trace.text
    assert f"/chat/{chat.pk}/" in trace.text
    assert MAIL in listed
    assert AuditEntry.objects.by(stranger).filter(action="run.viewed").exists()


def test_a_member_cannot_publish_another_users_run(chat, run, stranger):
    client = member_client(chat, stranger, "write")

    shown = client.get(f"/traces/{run.pk}/").text

    assert client.get(f"/traces/{run.pk}/share/").status_code == 404
    assert client.post(f"/traces/{run.pk}/flag/").status_code == 404
    assert client.post(f"/traces/{run.pk}/rating/", {"rating": "good"}).status_code == 404
    assert 'id="share"' not in shown
    assert f"/traces/{run.pk}/flag/" not in shown


@pytest.mark.parametrize(("right", "status"), [("read", 404), ("write", 302)])
def test_writers_can_approve_and_the_event_names_them(
    right, status, chat, question, stranger, person, monkeypatch
):
    # Nothing would drive it to its end.
    monkeypatch.setattr("agents.runs.approvals.runs.resume", lambda run: None)
    client = member_client(chat, stranger, right)
    asked = {"step": 1, "id": "c", "turn": 1}
    question.run.events.create(
        seq=1, type="approval_requested", agent="helper", time=timezone.now(), data=asked
    )

    listed = client.get("/approvals/").text
    word = {"verdict": "reject", f"digest-{question.pk}": question.digest}
    answer = client.post(f"/approvals/{question.pk}/", word)

    assert (f'id="approval-{question.pk}"' in listed) == (status == 302)
    assert answer.status_code == status
    said = question.run.events.filter(type="approval_resolved")
    assert [e.data["by_name"] for e in said] == (["eve"] if status == 302 else [])


def test_a_removed_member_sees_and_decides_nothing(chat, run, question, stranger):
    client = member_client(chat, stranger, "write")
    own = Run.objects.create(user=stranger, topic=chat.topic, query="mine", status="completed")
    members.remove_member(chat, stranger.pk)

    assert page(client, chat).status_code == 404
    assert client.get(f"/traces/{run.pk}/").status_code == 404
    assert client.get(f"/traces/{own.pk}/").status_code == 200
    assert not Approval.objects.for_user(stranger).exists()
    assert not ChatSession.objects.get().is_shared
    assert Run.objects.for_user(chat.user).filter(pk=own.pk).exists()


def test_losing_write_access_removes_queued_messages(chat, question, stranger):
    member_client(chat, stranger, "write")
    messages.save(chat, stranger, "and then?", "b")
    assert chat.messages.queued().count() == 1

    members.add_member(chat, "eve", "read")

    assert not chat.messages.queued().exists()


def test_the_owner_removes_any_queued_message_and_members_their_own(
    chat, question, stranger, person
):
    client = member_client(chat, stranger, "write")
    own = messages.save(chat, person, "mine", "b")
    theirs = messages.save(chat, stranger, "theirs", "c")
    client.post(f"/chat/{chat.pk}/queue/{own.pk}/withdraw/")
    assert f"withdraw-{own.pk}" not in page(client, chat).text
    assert f"withdraw-{theirs.pk}" in page(as_user(person), chat).text

    shown = as_user(person).post(f"/chat/{chat.pk}/queue/{theirs.pk}/withdraw/")

    assert list(chat.messages.queued()) == [own]
    assert "theirs" not in shown.text


async def test_queued_messages_of_a_disabled_account_are_not_answered(chat, stranger):
    await sync_to_async(members.add_member)(chat, "eve", "write")
    await Message.objects.acreate(
        session=chat, author=stranger, text="2 + 2", client_id="b", place=1
    )
    stranger.is_active = False
    await stranger.asave()

    await messages.answer_waiting()

    assert not await Run.objects.aexists()
    assert not await chat.messages.aexists()


async def test_the_page_of_a_removed_member_is_closed(chat, stranger):
    await sync_to_async(members.add_member)(chat, "eve", "read")
    async with tab(stranger, f"/ws/chat/{chat.pk}/") as socket:
        await frames_until(socket, "composer-state")
        await sync_to_async(members.remove_member)(chat, stranger.pk)
        assert await close_code(socket) == 4403

    async with tab(stranger, f"/ws/chat/{chat.pk}/") as socket:
        assert await close_code(socket) == 4404


async def test_a_chat_enters_and_leaves_the_list_on_another_open_page(chat, stranger):
    own = await ChatSession.objects.acreate(user=stranger, title="Own")
    row = f'id="session-{chat.pk}"'
    async with tab(stranger, f"/ws/chat/{own.pk}/") as socket:
        await frames_until(socket, "composer-state")
        await sync_to_async(members.add_member)(chat, "eve", "read")
        await frames_until(socket, row)
        await sync_to_async(members.remove_member)(chat, stranger.pk)
        frames = await frames_until(socket, 'id="sessions"')

    assert row not in frames[-1]


async def test_viewers_of_a_deleted_chat_are_not_told_they_were_removed(chat, stranger):
    await sync_to_async(members.add_member)(chat, "eve", "read")
    async with tab(stranger, f"/ws/chat/{chat.pk}/") as socket:
        await frames_until(socket, "composer-state")
        await ChatSession.objects.filter(pk=chat.pk).adelete()
        await pubsub.publish(chat.topic, "people.changed")

        assert await close_code(socket) == 4404


async def close_code(socket):
    """Return the close code, skipping other messages."""
    said = await socket.receive_output(10)
    while said["type"] != "websocket.close":
        said = await socket.receive_output(10)
    return said["code"]


def test_a_member_leaves_and_the_owner_cannot(chat, stranger, person):
    client = member_client(chat, stranger, "read")

    assert as_user(person).post(f"/chat/{chat.pk}/leave/").status_code == 404
    assert client.post(f"/chat/{chat.pk}/leave/").status_code == 302
    assert page(client, chat).status_code == 404


@pytest.mark.parametrize("name", one_in(4, ["nobody", "ada", "", "n\0obody"]))
def test_an_invalid_invitation_has_an_error_message(name, chat, person, stranger):
    client = as_user(person)

    answer = client.post(f"/chat/{chat.pk}/people/", {"name": name, "right": "read"})

    assert answer.status_code == 422
    assert 'class="problem"' in answer.text
    assert not Membership.objects.exists()


def test_a_stopped_run_does_not_claim_that_the_reader_stopped_it(chat, run, stranger):
    Run.objects.update(status="stopped", stopped_reason="cancelled", answer="")

    shown = page(member_client(chat, stranger, "write"), chat).text

    assert "This run was stopped." in shown
    assert "You stopped" not in shown


# By a link


def create_invitation(client, chat, right="read", hours="24"):
    answer = client.post(f"/chat/{chat.pk}/links/", {"right": right, "hours": hours})
    return answer.context["made"].partition("testserver")[2]


@pytest.mark.parametrize("right", ["read", "write"])
def test_joining_by_a_link_gives_its_access_level(right, chat, person, stranger):
    link, client = create_invitation(as_user(person), chat, right), as_user(stranger)

    answer = client.post(link)

    assert answer.headers["Location"] == f"/chat/{chat.pk}/"
    assert ChatSession.objects.writable_by(stranger).exists() == (right == "write")
    assert ChatSession.objects.for_user(stranger).exists()
    assert link.split("/")[2] not in json.dumps(list(Invitation.objects.values()), default=str)


def test_opening_a_link_asks_before_joining(chat, person, stranger):
    link, client = create_invitation(as_user(person), chat, "write"), as_user(stranger)

    answer = client.get(link)

    shown = answer.text
    assert "ada shared a chat with you" in shown
    assert chat.title in shown
    assert link.split("/")[2] not in shown
    assert answer.headers["Cache-Control"] == "no-store"
    assert not Membership.objects.exists()


def test_a_link_redirects_members_to_the_chat(chat, person, stranger):
    link, client = create_invitation(as_user(person), chat), as_user(stranger)
    client.post(link)

    assert client.get(link).headers["Location"] == f"/chat/{chat.pk}/"


def test_a_link_does_not_reduce_access(chat, person, stranger):
    member_client(chat, stranger, "write")

    as_user(stranger).post(create_invitation(as_user(person), chat, "read"))

    assert ChatSession.objects.writable_by(stranger).exists()


def test_an_expired_or_revoked_link_says_so(chat, person, stranger):
    owner, client = as_user(person), as_user(stranger)
    late, withdrawn = create_invitation(owner, chat), create_invitation(owner, chat)
    newest, oldest = Invitation.objects.all()
    Invitation.objects.filter(pk=oldest.pk).update(
        expires_at=timezone.now() - timedelta(hours=1)
    )
    owner.post(f"/chat/{chat.pk}/links/{newest.pk}/withdraw/")

    words = [client.get(link) for link in (late, withdrawn, "/join/never-made/")]

    assert [answer.status_code for answer in words] == [404] * 3
    for answer, said in zip(words, ["expired", "revoked", "This link is invalid"], strict=True):
        assert said in answer.text
    assert not ChatSession.objects.for_user(stranger).exists()


def test_a_removed_member_cannot_rejoin_by_the_same_link(chat, person, stranger):
    link, client = create_invitation(as_user(person), chat), as_user(stranger)
    client.post(link)

    as_user(person).post(f"/chat/{chat.pk}/people/{stranger.pk}/remove/")

    assert client.post(link).status_code == 404
    assert page(client, chat).status_code == 404


def test_a_removed_member_cannot_rejoin_by_another_link(chat, person, stranger):
    owner, client = as_user(person), as_user(stranger)
    one, other = create_invitation(owner, chat), create_invitation(owner, chat, "write")
    client.post(one)
    owner.post(f"/chat/{chat.pk}/people/{stranger.pk}/remove/")
    newer = create_invitation(owner, chat)

    for link in (other, newer):
        assert client.post(link).status_code == 404
        assert "Ask ada to add you by username." in client.get(link).text
    assert page(client, chat).status_code == 404

    owner.post(f"/chat/{chat.pk}/people/", {"name": "eve", "right": "read"})
    assert page(client, chat).status_code == 200
    client.post(f"/chat/{chat.pk}/leave/")
    assert client.post(newer).status_code == 302  # members who left can rejoin


def test_reduced_access_is_not_restored_by_the_same_link(chat, person, stranger):
    link, client = create_invitation(as_user(person), chat, "write"), as_user(stranger)
    client.post(link)

    as_user(person).post(f"/chat/{chat.pk}/people/", {"name": "eve", "right": "read"})
    client.post(link)

    assert not ChatSession.objects.writable_by(stranger).exists()
    as_user(person).post(f"/chat/{chat.pk}/people/{stranger.pk}/remove/")
    assert client.post(link).status_code == 404


def test_leaving_and_rejoining_does_not_restore_reduced_access(chat, person, stranger):
    token = members.create_invitation(chat, "write", "24")
    members.join(token, stranger)
    members.add_member(chat, "eve", "read")

    members.leave(chat, stranger)

    with pytest.raises(members.SharingRejected, match="revoked"):
        members.join(token, stranger)
    assert not chat.members.filter(user=stranger).exists()


def test_a_member_limited_to_reading_cannot_write_by_another_link(chat, person, stranger):
    owner, client = as_user(person), as_user(stranger)
    first, other = (
        create_invitation(owner, chat, "write"),
        create_invitation(owner, chat, "write"),
    )
    client.post(first)
    owner.post(f"/chat/{chat.pk}/people/", {"name": "eve", "right": "read"})
    newer = create_invitation(owner, chat, "write")

    for link in (other, newer):
        assert client.post(link).status_code == 302  # it still leads into the session
        assert not ChatSession.objects.writable_by(stranger).exists()
    client.post(f"/chat/{chat.pk}/leave/")
    assert "but not send messages" in client.get(other).text
    client.post(other)
    assert page(client, chat).status_code == 200
    assert not ChatSession.objects.writable_by(stranger).exists()
    other_guest = type(person).objects.create_user("kay")
    as_user(other_guest).post(other)
    assert ChatSession.objects.writable_by(other_guest).exists()

    owner.post(f"/chat/{chat.pk}/people/", {"name": "eve", "right": "write"})
    assert ChatSession.objects.writable_by(stranger).exists()


def test_a_read_link_stays_valid_when_its_guest_gets_read_access(chat, stranger):
    token = members.create_invitation(chat, "read", "24")
    members.join(token, stranger)
    members.add_member(chat, "eve", "write")

    members.add_member(chat, "eve", "read")

    assert chat.invitations.open().exists()


def test_deleting_a_chat_deletes_its_members_and_links(chat, stranger, person):
    member_client(chat, stranger, "read")
    create_invitation(as_user(person), chat)

    deletion.delete_permanently(chat)

    assert not Membership.objects.exists()
    assert not Invitation.objects.exists()


def test_sharing_is_audited(chat, stranger):
    member_client(chat, stranger, "read")
    members.remove_member(chat, stranger.pk)

    entries = AuditEntry.objects.filter(subject=f"chat:{chat.pk}").order_by("pk")
    assert [entry.action for entry in entries] == [
        "session.member_added",
        "session.member_removed",
    ]
    assert all(entry.detail["who"] == audit.person(stranger).subject for entry in entries)


@pytest.mark.parametrize("number", [2**63, 10**30])
def test_an_invalid_id_returns_404(number, chat, run, stranger, person):
    member_client(chat, stranger, "read")
    client = as_user(person)

    paths = [f"/chat/{chat.pk}/people/{number}/remove/"]
    paths += [f"/chat/{chat.pk}/links/{number}/withdraw/"]
    paths += [f"/traces/{run.pk}/comments/{number}/delete/", f"/approvals/{number}/"]

    assert [client.post(path).status_code for path in paths] == [404] * 4
    assert client.get("/approvals/new/", {"shown": number}).status_code == 200
