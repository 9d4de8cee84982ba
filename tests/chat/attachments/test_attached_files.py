"""Files in a chat: uploaded, read, sent with a message, and gone with it."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.catalog.language_models import planner_factory
from agents.engine.testing import Says
from agents.knowledge import ingestion
from agents.models import Collection, Document, Run, StoredFile
from chat import messages
from chat.errors import MessageRejected
from chat.messages import message_actions, queue_actions
from chat.models import Attachment, ChatSession, Member, Message
from chat.sessions import deletion
from tests.conftest import as_user
from tests.engine.test_attachments import images
from tests.pictures import png
from tests.review.conftest import may

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


def upload(user, name="notes.txt", content=b"The code word is heron.", **more):
    sent = {"file": SimpleUploadedFile(name, content), **more}
    return as_user(user).post("/chat/files/", sent)


def uploaded(user, *sent, is_read=True, **more):
    answer = upload(user, *sent, **more)
    assert answer.status_code == 201, answer.content
    if is_read:
        ingestion.process_waiting()
    return answer.json()["id"]


@pytest.fixture
def file(person):
    return uploaded(person)


async def answered(message):
    from agents import runs

    await runs.wait(message.run)
    return await Run.objects.aget(pk=message.run_id)


def request_text(model, at=-1):
    return str(model.requests[at]["messages"])


async def test_files_whose_names_look_the_same_are_told_apart(scripted, person, chat):
    model = scripted(Says(answer="Yes."), Says(answer="Yes."))
    names = ["Caf\u00e9.txt", "Cafe\u0301.txt", "CAFE\u0301.TXT"]
    files = [
        await sync_to_async(uploaded)(person, name, f"Text {at}.".encode())
        for at, name in enumerate(names)
    ]
    for sent in (files[:2], files[2:]):
        await answered(await messages.submit(chat, person, "Read", str(sent), files=sent))
    rows = Attachment.objects.order_by("pk")
    assert [row.name async for row in rows] == [
        *("Caf\u00e9.txt", "Cafe\u0301 (2).txt", "CAFE\u0301 (3).TXT")
    ]
    assert '(2).txt">\nText 1.' in request_text(model).replace("\\n", "\n")


async def test_the_model_reads_a_short_file_whole(scripted, person, chat, file):
    model = scripted(Says(answer="Heron."), Says(answer="Still heron."))
    message = await messages.submit(chat, person, "Which word?", "a", files=[file])
    await answered(message)
    assert (
        '<file name="notes.txt">\nThe code word is heron.\n</file>'
        in (model.requests[0]["messages"][-1]["content"])
    )
    await answered(await messages.submit(chat, person, "Are you sure?", "b"))
    assert "The code word is heron." in request_text(model)


async def test_a_message_can_be_a_file_only(scripted, person, file):
    scripted(Says(answer="A note."))
    message = await messages.submit(None, person, " ", "a", files=[file])
    run = await answered(message)
    assert (message.text, run.query) == ("", "notes.txt")
    assert message.session.title == "notes.txt"


async def test_a_long_file_is_announced_and_searchable_in_its_chat_only(
    scripted, person, chat, stranger
):
    scripted(Says(answer="About birds."))
    text = "# Birds\n\n" + "\n\n".join(f"## Bird {n}\n\n" + "wing " * 200 for n in range(60))
    pk = await sync_to_async(uploaded)(person, "birds.md", text.encode())
    message = await messages.submit(chat, person, "What is this about?", "a", files=[pk])
    run = await answered(message)
    step = await run.steps.aget(number=1)
    asked = json.dumps(step.request)
    assert "too long to be included" in asked
    assert "Bird 3" in asked
    assert asked.count("wing") < 1_000
    document = await Document.objects.select_related("collection").aget()
    assert document.collection.topic == chat.topic


async def test_a_model_that_sees_gets_the_image_and_the_next_question_too(
    scripted, person, chat, monkeypatch
):
    monkeypatch.setattr(planner_factory.model_info, "sees_images", lambda name: True)
    model = scripted(Says(answer="A square."), Says(answer="Gray."))
    pk = await sync_to_async(uploaded)(person, "photo.png", png(30, 30))
    run = await answered(await messages.submit(chat, person, "What?", "a", files=[pk]))
    await answered(await messages.submit(chat, person, "Which color?", "b"))
    assert [len(images(request["messages"])) for request in model.requests] == [1, 1]
    assert await run.attachments.acount() == 1


async def test_an_edited_message_and_a_new_answer_keep_the_files(scripted, person, chat, file):
    model = scripted(*[Says(answer="Heron.")] * 3)
    first = await messages.submit(chat, person, "Which word?", "a", files=[file])
    await answered(first)
    second = await message_actions.edit(chat, person, first.pk, "Which one?", "b")
    await answered(second)
    third = await message_actions.regenerate(chat, person, first.pk, "c")
    await answered(third)
    assert all("heron" in request_text(model, at) for at in range(3))
    assert await Attachment.objects.acount() == 3
    assert await Document.objects.filter(file__isnull=False).acount() == 1


async def test_a_queued_message_keeps_its_files_and_returns_them(person, chat, model, file):
    first = await messages.submit(chat, person, "Hello", "a")
    queued = await messages.submit(chat, person, "Read it", "b", files=[file])
    assert queued.is_queued
    assert await queue_actions.withdraw(chat, person, queued.pk) == "Read it"
    assert await Attachment.objects.filter(message=None, pk=file).aexists()
    await messages.submit(chat, person, "Read it again", "c", files=[file])
    model.let_go.set()
    await answered(first)
    message = await _wait_for_answer(chat, "Read it again")
    assert await message.attachments.acount() == 1
    assert "heron" in str(model.requests[-1])


async def _wait_for_answer(chat, text):
    import asyncio

    for _ in range(200):
        found = await Message.objects.filter(
            session=chat, text=text, run__isnull=False
        ).afirst()
        if found and not await Run.objects.live().filter(message=found).aexists():
            return found
        await asyncio.sleep(0.05)
    raise AssertionError("no answer")


async def test_files_are_refused_by_an_agent_that_stores_no_personal_data(
    person, chat, agent, file
):
    agent.personal_data = "unkept"
    await agent.asave()
    with pytest.raises(MessageRejected, match="stores no personal data"):
        await messages.submit(chat, person, "Which word?", "a", files=[file])
    assert await Attachment.objects.filter(message=None).aexists()


def test_deleting_a_chat_deletes_its_files_and_their_text(person, chat, file):
    message = Message.objects.create(
        session=chat, author=person, text="", client_id="a", has_files=True
    )
    Attachment.objects.filter(pk=file).update(message=message)
    deletion.delete_permanently(chat)
    assert not Attachment.objects.exists()
    assert not StoredFile.objects.exists()
    assert not Document.objects.exists()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("../../etc/passwd", b"root", "passwd"),
        ("C:\\temp\\a.txt", b"text", "a.txt"),
        ("a\x1b[31m\u202etxt.exe", b"text", "a[31mtxt.exe"),
        ("x" * 300 + ".pdf", b"%PDF-1.4", None),
    ],
)
def test_a_name_leads_nowhere(person, name, content, expected):
    answer = upload(person, name, content)
    assert answer.status_code == 201
    assert len(answer.json()["name"]) <= 200
    if expected:
        assert answer.json()["name"] == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\nbroken"),
        ("a.pdf", b"MZ\0\0program"),
        ("a.txt", b""),
        ("a.zip", b"PK\x05\x06" + bytes(18)),
        ("a.jpg", b"\0\0\0\x18ftypheic"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(person, name, content):
    answer = upload(person, name, content)
    assert answer.status_code == 422
    assert name in answer.json()["problem"]
    assert not StoredFile.objects.exists()


def test_nobody_else_sees_sends_or_removes_an_unsent_file(person, stranger, file):
    client = as_user(stranger)
    assert client.get(f"/chat/files/{file}/").status_code == 404
    assert client.get(f"/chat/files/?ids={file}").json() == {"files": []}
    assert client.post(f"/chat/files/{file}/delete/").status_code == 404
    with pytest.raises(MessageRejected, match="no longer available"):
        messages.save(None, stranger, "Mine now", "a", files=[file])


def test_a_member_opens_the_files_of_a_shared_chat_and_a_reader_adds_none(
    person, stranger, chat, file
):
    message = Message.objects.create(session=chat, author=person, text="", client_id="a")
    Attachment.objects.filter(pk=file).update(message=message)
    client = as_user(stranger)
    assert client.get(f"/chat/files/{file}/").status_code == 404
    Member.objects.create(session=chat, user=stranger, topic=chat.topic, may_write=False)
    assert client.get(f"/chat/files/{file}/").status_code == 200
    assert upload(stranger, chat=chat.pk).status_code == 404


def test_a_page_in_a_file_is_downloaded_and_runs_nothing(person):
    pk = uploaded(person, "page.html", b"<script>alert(1)</script>", is_read=False)
    answer = as_user(person).get(f"/chat/files/{pk}/")
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Security-Policy"].startswith("sandbox")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "no-store, private"


def test_a_message_has_ten_files_at_most(person):
    with pytest.raises(MessageRejected, match="at most 10 files"):
        messages.save(None, person, "All", "a", files=range(1, 12))
    assert not ChatSession.objects.exists()


def test_the_rows_of_a_deleted_table_are_gone(person, chat, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    file = uploaded(person, "cities.csv", b"city,n\nOsaka,1\n")
    message = messages.save(chat, person, "How many?", "a", files=[file])
    loaded = tmp_path / "tables" / chat.topic / "a.sqlite3"
    loaded.parent.mkdir(parents=True)
    loaded.write_text("Osaka")

    Message.objects.get(pk=message.pk).delete()

    assert not loaded.exists()


def test_a_removed_file_is_gone(person, file):
    assert as_user(person).post(f"/chat/files/{file}/delete/").status_code == 204
    assert not StoredFile.objects.exists()
    assert not Document.objects.exists()
    assert Collection.objects.filter(topic=f"drafts.{person.pk}").exists()


async def test_the_trace_shows_the_files_of_the_question(
    scripted, person, chat, file, monkeypatch
):
    monkeypatch.setattr(planner_factory.model_info, "sees_images", lambda name: True)
    scripted(Says(answer="Both."))
    picture = await sync_to_async(uploaded)(person, "photo.png", png(30, 30))
    message = await messages.submit(chat, person, "What?", "a", files=[file, picture])
    run = await answered(message)
    page = await sync_to_async(page_of)(person, f"/traces/{run.pk}/")
    image = await run.attachments.aget()
    assert "notes.txt" in page
    assert f"SHA-256 {run.files[0]['digest'][:12]}" in page
    assert f'src="attachments/{image.digest}/"' in page


def page_of(user, url):
    return as_user(user).get(url).text


async def test_the_trace_shows_the_text_that_the_model_got(scripted, person, chat, stranger):
    reviewer = await sync_to_async(may)(stranger, "review_runs")
    scripted(Says(answer="Heron."))
    content = b"The code word is heron. Write to ann@example.org."
    file = await sync_to_async(uploaded)(person, "notes.txt", content)
    run = await answered(await messages.submit(chat, person, "What?", "a", files=[file]))

    own = await sync_to_async(page_of)(person, f"/traces/{run.pk}/files/1/")
    others = await sync_to_async(page_of)(reviewer, f"/traces/{run.pk}/files/1/")

    assert "Whole text" in own
    assert "Write to ann@example.org." in own
    assert "code word is heron" in others
    assert "ann@example.org" not in others
