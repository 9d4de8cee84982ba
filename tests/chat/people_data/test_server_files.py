"""Files that MCP servers save for one person or chat are deleted with them."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from agents.access import recently_deleted
from agents.catalog import mcp_servers
from agents.models import Run
from agents.tools.mcp.process.isolation import chat_scope, person_scope
from chat.models import ChatSession
from chat.people_data import data_export, erasure, erasure_report, retention
from chat.sessions import deletion
from chat.sharing import members
from tests.access.audit.rows import conversation, create_ended_run, create_question
from tests.conftest import as_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def data(tmp_path, settings):
    settings.DATA_DIR = tmp_path
    (tmp_path / "mcp" / "1" / "work").mkdir(parents=True)
    (tmp_path / "mcp" / "1" / "work" / "shared").write_text("x")
    return tmp_path


def save_file(data, scope, server=1):
    """Save a file as an instance of a server does, with its lock file."""
    folder = data / "mcp" / f"{server}.{scope}"
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "notes").write_text("x")
    folder.with_name(f"{folder.name}.lock").touch()


def scopes():
    return sorted(mcp_servers.instance_folders())


def test_deleting_a_chat_deletes_its_files_after_the_commit(data, person):
    chat, other = conversation(person, "one?"), conversation(person, "two?")
    for server in (1, 2):
        save_file(data, chat_scope(chat.topic), server)
    save_file(data, chat_scope(other.topic))
    save_file(data, person_scope(person.pk))

    with transaction.atomic():
        deletion.delete_permanently(chat)
        assert len(scopes()) == 3

    assert scopes() == [chat_scope(other.topic), person_scope(person.pk)]
    assert not list((data / "mcp" / "2.chats").iterdir())
    assert (data / "mcp" / "1" / "work" / "shared").exists()


def test_a_deletion_that_is_rolled_back_deletes_no_files(data, person):
    chat = conversation(person, "one?")
    topic = chat.topic
    save_file(data, chat_scope(topic))

    with transaction.atomic():
        deletion.delete_permanently(chat)
        transaction.set_rollback(True)

    assert scopes() == [chat_scope(topic)]


def test_an_expired_chat_is_deleted_with_its_files(data, person, settings):
    settings.RUN_RETENTION_DAYS = 30
    old, young = conversation(person, "old?", days=31), conversation(person, "young?")
    save_file(data, chat_scope(old.topic))
    save_file(data, chat_scope(young.topic))

    retention.prune(dry_run=True)
    assert len(scopes()) == 2
    retention.prune()

    assert scopes() == [chat_scope(young.topic)]


def test_the_daily_cleanup_deletes_orphaned_files(data, person):
    chat, empty = conversation(person, "one?"), conversation(person)
    create_ended_run(person, "Scheduled?", "schedule.1")
    used = [chat_scope(topic) for topic in (chat.topic, empty.topic, "schedule.1")]
    used.append(person_scope(person.pk))
    gone = [chat_scope("chat.9999"), chat_scope("ask.0f3"), person_scope(9999)]
    for scope in (*used, *gone):
        save_file(data, scope)

    retention.prune()

    assert scopes() == sorted(used)


def test_erasing_a_user_deletes_their_files(data, person, stranger):
    own, others = conversation(person, "mine?"), conversation(stranger, "theirs?")
    members.add_member(others, "ada", "write")
    create_question(others, person, "May I?")
    create_ended_run(person, "Rerun?", "rerun.1")
    stay = [chat_scope(others.topic), person_scope(stranger.pk)]
    go = [chat_scope(own.topic), chat_scope("rerun.1"), person_scope(person.pk)]
    for scope in (*stay, *go):
        save_file(data, scope)
    [planned] = [
        line for line in erasure_report.plan(person).goes if "MCP servers" in line.what
    ]

    erasure.begin(person, None)
    report = erasure.finish(person)

    assert planned.count == 3
    assert "folders of MCP servers (3)" in report.sentences[0]
    assert report.facts["removed"]["mcpfolder"] == 3
    assert scopes() == sorted(stay)


def test_the_erasure_is_announced_and_the_export_says_what_is_missing(data, person, capsys):
    save_file(data, person_scope(person.pk))

    call_command("erase_person", "ada", "--dry-run")

    assert "1  Folders that MCP servers have for this user" in capsys.readouterr().out
    assert scopes() == [person_scope(person.pk)]
    [_, pieces] = next(iter(data_export.files(person)))
    assert "Files that MCP servers save for this user" in "".join(pieces)


def test_a_user_deletes_a_chat_with_its_files(data, person):
    chat = conversation(person, "one?")
    save_file(data, chat_scope(chat.topic))

    as_user(person).post(f"/chat/{chat.pk}/delete/")
    ChatSession.objects.update(deleted_at=timezone.now() - timedelta(days=31))
    recently_deleted.erase_due()

    assert not Run.objects.exists()
    assert scopes() == []
