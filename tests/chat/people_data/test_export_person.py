"""Export of a user's data."""

import io
import json
import zipfile

import pytest
from django.core.management import CommandError, call_command

from agents.models import Approval, AuditEntry, Run
from agents.review.models import Comment, Rating
from chat.people_data import data_export
from chat.sharing import members
from tests.access.audit.rows import conversation, create_question
from tests.conftest import as_async_user, as_user
from tests.review.conftest import may

pytestmark = pytest.mark.django_db(transaction=True)


def unpack_export(user):
    return unzip(b"".join(data_export.archive(user)))


def unzip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.fixture
def belonging(person, stranger):
    """Some of everything, next to another user's data."""
    chat = conversation(person, "Where is **my** parcel?")
    run = Run.objects.get()
    Rating.objects.create(run=run, user=person, is_good=True, comment="Thanks")
    Comment.objects.create(run=run, author=person, text="Look here")
    about = {
        "run": run,
        "step": 1,
        "tool": "send",
        "arguments": "{}",
        "asked_at": run.started_at,
    }
    Approval.objects.create(decided_by=person, verdict="approved", reason="fine", **about)
    conversation(stranger, "My own affair?")
    return chat


def test_the_export_has_messages_runs_and_feedback(belonging, person):
    files = unpack_export(person)

    run = Run.objects.get(user=person)
    trace = json.loads(files[f"runs/{run.pk}.json"])
    assert trace["steps"][0]["request"]["messages"][0]["content"] == "Where is **my** parcel?"
    assert [event["type"] for event in trace["events"]] == ["step_started", "run_finished"]
    [message] = json.loads(files[f"sessions/{belonging.pk}.json"])["messages"]
    assert message["text"] == "Where is **my** parcel?"
    assert "\n\nAnswer to Where is" in files[f"sessions/{belonging.pk}.md"]
    assert json.loads(files["ratings.json"])[0]["comment"] == "Thanks"
    assert json.loads(files["comments.json"])[0]["text"] == "Look here"
    assert json.loads(files["approvals.json"])[0]["reason"] == "fine"
    assert json.loads(files["account.json"])["username"] == "ada"


def test_the_export_has_nothing_of_other_users(belonging, person, stranger):
    for files in (unpack_export(person), unpack_export(may(person, "review_runs"))):
        assert "My own affair?" not in str(files)


def test_the_export_has_other_members_messages_in_shared_chats(belonging, person, stranger):
    members.add_member(belonging, "eve", "write")
    create_question(belonging, stranger, "And mine?")

    assert "And mine?" in str(unpack_export(person))
    assert "parcel" in str(unpack_export(stranger))

    members.remove_member(belonging, stranger.pk)
    assert "parcel" not in str(unpack_export(type(stranger).objects.get(pk=stranger.pk)))


def test_the_export_masks_what_other_members_wrote_in_shared_chats(belonging, person, stranger):
    members.add_member(belonging, "eve", "write")
    create_question(belonging, stranger, "Write to eve@example.com")
    create_question(belonging, person, "Write to ada@example.com")
    run = Run.objects.get(query="Write to ada@example.com")
    run.history = [{"role": "user", "content": "Write to eve@example.com"}]
    run.save(update_fields=["history"])

    files = unpack_export(person)

    texts = [m["text"] for m in json.loads(files[f"sessions/{belonging.pk}.json"])["messages"]]
    assert texts[1:] == ["Write to ‹email›", "Write to ada@example.com"]
    assert "eve@example.com" not in str(files)
    assert "ada@example.com" in files[f"sessions/{belonging.pk}.md"]


def test_the_export_has_the_sign_in_history(person):
    as_user(person, REMOTE_ADDR="203.0.113.77").post("/logout/")

    entries = json.loads(unpack_export(person)["sign-ins.json"])

    assert [entry["action"] for entry in entries] == ["signin.out"]
    assert entries[0]["address"] == "203.0.113.77"


async def test_every_user_can_export_their_own_data(belonging, person):
    client = await as_async_user(person)

    shown = (await client.get("/account/data/")).text
    answer = await client.post("/account/data/download/")
    files = unzip(b"".join([part async for part in answer.streaming_content]))

    assert "Download my data" in shown
    assert "account.json" in files
    assert answer["Content-Type"] == "application/zip"
    entry = await AuditEntry.objects.select_related("person").afirst()
    assert (entry.action, entry.actor_name) == ("person.exported", "ada")


async def test_administrators_can_export_other_users_data(belonging, person, administrator):
    client = await as_async_user(administrator)

    answer = await client.post(f"/admin/chat/chatsession/person/{person.pk}/data/")
    files = unzip(b"".join([part async for part in answer.streaming_content]))

    assert json.loads(files["account.json"])["username"] == "ada"
    entry = await AuditEntry.objects.select_related("person").afirst()
    assert (entry.action, entry.actor_name) == ("person.exported", "root")


def test_exporting_other_users_data_needs_the_permission(person, stranger):
    stranger.is_staff = True
    stranger.save()
    client = as_user(may(stranger, "view_user", "view_chatsession"))

    answer = client.post(f"/admin/chat/chatsession/person/{person.pk}/data/")

    assert answer.status_code == 403


def test_the_command_writes_a_file_for_its_owner_only(belonging, tmp_path, capsys):
    path = tmp_path / "ada.zip"

    call_command("export_person", "ada", "-o", str(path))

    assert "account.json" in unzip(path.read_bytes())
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_command_reports_errors(belonging, tmp_path):
    with pytest.raises(CommandError, match="no user named 'bob'"):
        call_command("export_person", "bob", "-o", str(tmp_path / "x.zip"))
    with pytest.raises(CommandError, match="Can't write"):
        call_command("export_person", "ada", "-o", str(tmp_path / "no" / "x.zip"))
