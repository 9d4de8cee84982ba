"""Erasure leaves nothing but a token in the audit log."""

import time

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from agents import runs
from agents.access import audit
from agents.access.audit import hash_chain
from agents.models import Approval, AuditEntry, Run, RunEvent
from agents.review.models import Note
from chat.models import ChatSession, Message
from chat.people_data import erasure
from chat.sharing import members
from tests.access.audit.rows import conversation, create_ended_run, create_question
from tests.conftest import as_user

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]
WORDS = "My secret garden is in Kamakura"


def everything():
    """Return the content of all tables, except encrypted values."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if not table.startswith(("agents_chunk", "django_migrations")):
                cursor.execute(f'SELECT * FROM "{table}"')
                found += [f"{table}: {row}" for row in cursor.fetchall()]
    return found


def rows_with(words):
    return [row for row in everything() if words in row]


@pytest.fixture
def together(person, stranger):
    """Another user's chat in which the person took part."""
    chat = conversation(stranger, "What shall we do?")
    members.add_member(chat, "ada", "write")
    mine = create_question(chat, person, WORDS)
    said = [{"role": "user", "content": WORDS}, {"role": "assistant", "content": mine.answer}]
    create_question(chat, stranger, "And then?", history=said)
    return chat


async def test_nothing_of_an_erased_user_is_left(person, stranger, together, administrator):
    from asgiref.sync import sync_to_async

    await sync_to_async(conversation)(person, f"{WORDS}, too")
    await sync_to_async(as_user)(person)
    assert await sync_to_async(rows_with)(WORDS)

    await erasure.erase(person, administrator)

    assert await sync_to_async(rows_with)(WORDS) == []
    assert await sync_to_async(rows_with)("'ada'") == []
    assert not await type(person).objects.filter(username="ada").aexists()
    assert await Session.objects.acount() == 0
    assert [message.text async for message in Message.objects.order_by("pk")] == [
        "What shall we do?",
        "And then?",
    ]
    await together.arefresh_from_db()
    assert not together.is_shared


def test_the_audit_chain_stays_intact_and_anonymous(person, administrator):
    as_user(person, REMOTE_ADDR="203.0.113.77").post("/logout/")
    token = audit.person(person).token

    call_command("erase_person", "ada", "--yes")

    assert hash_chain.verify().holds
    entry = AuditEntry.objects.filter(action="signin.out").get()
    assert (entry.person.token, entry.person.user) == (token, None)
    assert entry.actor_name == f"erased person {token[:8]}"
    assert entry.person.decrypt(entry.place) == ""
    assert AuditEntry.objects.first().action == "person.erased"


def test_decisions_stay_without_their_author(person, stranger):
    run = create_ended_run(stranger, "Send it?", "chat.9")
    about = {
        "run": run,
        "step": 1,
        "tool": "send",
        "arguments": "{}",
        "asked_at": run.started_at,
    }
    Approval.objects.create(decided_by=person, verdict="approved", reason=WORDS, **about)
    told = {"step": 1, "by": person.pk, "by_name": "ada", "reason": WORDS, "is_approved": True}
    RunEvent.objects.create(
        run=run, seq=3, type="approval_resolved", time=run.started_at, data=told
    )

    call_command("erase_person", "ada", "--yes")

    assert rows_with(WORDS) == rows_with("'ada'") == rows_with('"ada"') == []
    assert Approval.objects.get().verdict == "approved"


async def test_live_runs_are_stopped_first(person, administrator, agent, scripted):
    from asgiref.sync import sync_to_async

    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1", user=person)

    await erasure.erase(person, administrator)

    assert not await Run.objects.filter(pk=run.pk).aexists()


def test_an_interrupted_erasure_is_resumed(person, administrator, monkeypatch):
    conversation(person, WORDS)
    conversation(person, "more")
    with monkeypatch.context() as patch:
        patch.setattr(type(person), "delete", lambda user: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            call_command("erase_person", "ada", "--yes")
    person.refresh_from_db()
    assert not person.is_active

    call_command("erase_person", "ada", "--yes")

    assert rows_with(WORDS) == []
    begun = AuditEntry.objects.filter(action="person.erasure")
    assert begun.count() == 1


def test_the_confirmation_lists_what_will_be_deleted(person, stranger, together, capsys):
    run = Run.objects.filter(user=stranger).first()
    Note.objects.create(run=run, author=person, text="Odd")

    call_command("erase_person", "ada", "--dry-run")

    told = capsys.readouterr().out
    assert "1  Runs" in told
    assert "1  Messages in other users' chats" in told
    assert "1  Notes on other users' runs" in told
    assert type(person).objects.filter(pk=person.pk).exists()


def test_erasing_needs_confirmation(person):
    with pytest.raises(CommandError, match="--yes"):
        call_command("erase_person", "ada")

    assert type(person).objects.filter(pk=person.pk, is_active=True).exists()


def test_the_last_administrator_cannot_be_erased(administrator):
    with pytest.raises(CommandError, match="last administrator"):
        call_command("erase_person", "root", "--yes")


# In the console


def erase_page(user):
    return f"/admin/chat/chatsession/person/{user.pk}/erase/"


def fresh(client):
    """Mark the session as just confirmed."""
    session = client.session
    session["confirmed_at"] = time.time()
    session.save()
    return client


def test_an_administrator_erases_the_confirmed_user(person, administrator):
    conversation(person, WORDS)
    client, page = as_user(administrator), erase_page(person)
    assert client.post(page, {"name": "ada"}).headers["Location"] == "/account/confirm/"
    fresh(client)
    LogEntry.objects.log_actions(administrator.pk, [person], 2, "changed", single_object=True)

    assert "Will be deleted" in client.get(page).text
    refused = client.post(page, {"name": "Ada"})
    assert refused.status_code == 422
    assert ChatSession.objects.exists()
    done = client.post(page, {"name": "ada"}, follow=True)

    assert "has been erased" in done.text
    assert "Removed: chats (1), messages (1), runs (1), " in done.text
    assert rows_with(WORDS) == rows_with("'ada'") == []


def test_an_administrator_cannot_erase_themselves_in_the_console(administrator):
    client = fresh(as_user(administrator))

    answer = client.post(erase_page(administrator), {"name": "root"})

    assert answer.status_code == 422


def test_erasing_needs_the_permission_to_delete_users(person, stranger):
    stranger.is_staff = True
    stranger.save()

    assert as_user(stranger).post(erase_page(person), {"name": "ada"}).status_code == 403


# By themselves


def test_users_cannot_delete_their_account_unless_allowed(person):
    client = as_user(person)

    assert "Delete my account" not in client.get("/account/data/").text
    assert client.post("/account/erase/", {"name": "ada"}).status_code == 404


def test_users_delete_their_account_with_their_password(django_user_model, settings):
    settings.SELF_ERASURE = True
    django_user_model.objects.create_user("ada", password="a long walk")
    client = Client()
    client.post("/login/", {"username": "ada", "password": "a long walk"})

    wrong = client.post("/account/erase/", {"name": "ada", "password": "a short walk"})
    assert (wrong.status_code, "Wrong password" in wrong.text) == (422, True)
    done = client.post("/account/erase/", {"name": "ada", "password": "a long walk"})

    assert done.headers["Location"] == "/login/"
    assert "Your account and your data have been deleted." in client.get("/login/").text
    assert not django_user_model.objects.exists()
