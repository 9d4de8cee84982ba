"""Chats, messages and files over REST."""

import asyncio
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from agents.db import database
from agents.knowledge import ingestion
from agents.models import ApiKey, Quota, Run
from chat.models import ApiRequest, ChatSession, Member, Message
from chat.people_data import retention
from tests.chat.api.rest.conftest import body_of, finished

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def test_a_chat_is_started_answered_and_read(program):
    started = await program.post("/chats", {"text": "What is 6 * 7?", "agent": "helper"})
    chat = started.json()
    await finished(program, chat["message"]["run"]["id"])
    messages = (await program.get(f"/chats/{chat['id']}/messages")).json()

    assert started.status_code == 201
    assert chat["owner"] == "ada"
    [message] = messages["items"]
    assert message["text"] == "What is 6 * 7?"
    assert "42" in message["answer"]
    assert message["run"]["status"] == "completed"
    assert message["run"]["chat"] == chat["id"]
    assert "next_cursor" not in messages
    saved = await Run.objects.aget(pk=message["run"]["id"])
    assert saved.api_key_id == program.key.pk


async def test_a_message_waits_only_if_it_may(program, model, chat):
    path = f"/chats/{chat.pk}/messages"
    first = (await program.post(path, {"text": "One?"})).json()

    refused = await program.post(path, {"text": "Two?"})
    queued = await program.post(path, {"text": "Two?", "queue": True})
    model.let_go.set()
    await finished(program, first["run"]["id"])

    assert refused.status_code == 409
    assert refused.json()["code"] == "run_in_progress"
    assert refused.json()["run"] == first["run"]["id"]
    assert queued.status_code == 201
    assert queued.json()["is_queued"] is True
    assert "run" not in queued.json()


async def test_chats_are_pages_that_new_ones_dont_move(program, person):
    made = [await ChatSession.objects.acreate(user=person, title=f"{n}") for n in range(5)]

    first = (await program.get("/chats?limit=2")).json()
    await ChatSession.objects.acreate(user=person, title="new")
    await made[3].adelete()
    second = (await program.get(f"/chats?limit=2&cursor={first['next_cursor']}")).json()
    third = (await program.get(f"/chats?limit=2&cursor={second['next_cursor']}")).json()

    titles = [[chat["title"] for chat in page["items"]] for page in (first, second, third)]
    assert titles == [["4", "3"], ["2", "1"], ["0"]]
    assert "next_cursor" not in third


async def test_chats_are_found_and_filed(program, person, stranger):
    tea = await ChatSession.objects.acreate(user=person, title="Tea")
    await ChatSession.objects.acreate(user=person, title="Coffee")
    await ChatSession.objects.acreate(user=stranger, title="Tea of others")

    found = (await program.get("/chats?search=tea")).json()
    changed = await program.call("patch", f"/chats/{tea.pk}", {"is_pinned": True})
    pinned = (await program.get("/chats?is_pinned=true")).json()
    others = (await program.get("/chats?is_pinned=false")).json()

    assert [chat["title"] for chat in found["items"]] == ["Tea"]
    assert changed.json()["is_pinned"] is True
    assert [chat["title"] for chat in pinned["items"]] == ["Tea"]
    assert [chat["title"] for chat in others["items"]] == ["Coffee"]


async def test_an_edit_of_an_unseen_version_is_refused(program, chat):
    path = f"/chats/{chat.pk}"
    read = await program.get(path)
    tag = read.headers["ETag"]

    unchanged = await program.get(path, if_none_match=tag)
    renamed = await program.call("patch", path, {"title": "Tea"}, if_match=tag)
    late = await program.call("patch", path, {"title": "Coffee"}, if_match=tag)
    next_tag = renamed.headers["ETag"]
    again = await program.call("patch", path, {"title": "Cocoa"}, if_match=next_tag)

    assert unchanged.status_code == 304
    assert unchanged.content == b""
    assert renamed.json()["title"] == "Tea"
    assert late.status_code == 412
    assert late.json()["code"] == "changed"
    assert again.json()["title"] == "Cocoa"
    assert (await program.get(path)).headers["ETag"] == again.headers["ETag"]


async def test_a_deleted_chat_is_gone_until_it_is_restored(program, chat):
    path = f"/chats/{chat.pk}"

    assert (await program.call("delete", path)).status_code == 204
    assert (await program.get(path)).status_code == 404
    assert (await program.post(f"{path}/restore")).json()["title"] == "Sums"
    assert (await program.get(path)).status_code == 200
    assert (await program.post(f"{path}/restore")).status_code == 404


async def test_a_reader_of_a_shared_chat_can_only_read(connect, stranger, chat):
    await ChatSession.objects.filter(pk=chat.pk).aupdate(is_shared=True)
    await Member.objects.acreate(session=chat, user=stranger, topic=chat.topic, may_write=False)
    reader = await connect(user=stranger)
    path = f"/chats/{chat.pk}"

    read = await reader.get(path)
    sent = await reader.post(f"{path}/messages", {"text": "Hello?"})
    renamed = await reader.call("patch", path, {"title": "Mine"})
    deleted = await reader.call("delete", path)

    assert read.json()["may_write"] is False
    assert sent.status_code == 422
    assert renamed.status_code == 403
    assert deleted.status_code == 404


async def test_a_chat_is_exported(program, chat, person):
    await Message.objects.acreate(session=chat, author=person, text="6 * 7?", client_id="a")

    as_json = await program.get(f"/chats/{chat.pk}/export.json")
    as_text = await program.get(f"/chats/{chat.pk}/export.md")
    as_html = await program.get(f"/chats/{chat.pk}/export.html")

    assert "6 * 7?" in (await body_of(as_json)).decode()
    assert (await body_of(as_text)).startswith(b"# Sums")
    assert as_html.status_code == 422


async def test_a_file_is_uploaded_sent_and_downloaded(program):
    upload = {"file": SimpleUploadedFile("tea.txt", b"Green tea is green."), "agent": "helper"}
    uploaded = await program.client.post("/api/v1/files", upload)
    file = uploaded.json()
    await asyncio.to_thread(ingestion.process_waiting)
    sent = await program.post("/chats", {"text": "What is tea?", "files": [file["id"]]})
    about = (await program.get(f"/files/{file['id']}")).json()
    content = await program.get(f"/files/{file['id']}/content")

    assert uploaded.status_code == 201, file
    assert file["name"] == "tea.txt"
    assert file["kind"] == "document"
    assert sent.json()["message"]["files"][0]["id"] == file["id"]
    assert about["size"] == 19
    assert await body_of(content) == b"Green tea is green."
    assert "attachment" in content.headers["Content-Disposition"]
    assert (await program.call("delete", f"/files/{file['id']}")).status_code == 404
    await finished(program, sent.json()["message"]["run"]["id"])


async def test_a_file_that_cant_be_read_is_refused(program):
    upload = {"file": SimpleUploadedFile("a.zip", b"PK\x03\x04" + bytes(100))}
    response = await program.client.post("/api/v1/files", upload)
    without = await program.client.post("/api/v1/files", {})

    assert response.status_code == 422
    assert response.json()["code"] == "file_rejected"
    assert without.status_code == 422
    assert without.json()["errors"][0]["field"] == "file"


async def test_the_same_idempotency_key_creates_once(program):
    first = await program.post("/runs", {"text": "6 * 7"}, idempotency_key="one")
    again = await program.post("/runs", {"text": "6 * 7"}, idempotency_key="one")
    other = await program.post("/runs", {"text": "6 * 8"}, idempotency_key="one")
    new = await program.post("/runs", {"text": "6 * 7"}, idempotency_key="two")

    assert first.status_code == again.status_code == new.status_code == 201
    assert first.json()["id"] == again.json()["id"] != new.json()["id"]
    assert other.status_code == 422
    assert other.json()["code"] == "idempotency_key_reused"
    assert await Run.objects.acount() == 2
    for run in (first, new):
        await finished(program, run.json()["id"])


async def test_a_key_of_another_program_is_another_one(program, connect):
    second = await connect()
    first = await program.post("/chats", {"text": "6 * 7"}, idempotency_key="one")
    other = await second.post("/chats", {"text": "6 * 8"}, idempotency_key="one")

    assert first.json()["id"] != other.json()["id"]
    for chat in (first, other):
        await finished(program, chat.json()["message"]["run"]["id"])


async def test_requests_at_the_same_time_create_once(program):
    body = {"text": "6 * 7"}

    responses = await asyncio.gather(
        *(program.post("/chats", body, idempotency_key="one") for _ in range(6))
    )

    statuses = [response.status_code for response in responses]
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert await Message.objects.acount() == await ChatSession.objects.acount() == 1
    [run] = {r.json()["message"]["run"]["id"] for r in responses if r.status_code == 201}
    await finished(program, run)


async def test_what_failed_can_be_tried_again(program):
    bad = await program.post("/runs", {"text": "6", "agent": "no"}, idempotency_key="one")
    again = await program.post("/runs", {"text": "6", "agent": "no"}, idempotency_key="one")

    assert bad.status_code == again.status_code == 422
    assert again.json()["code"] == "message_rejected"
    assert await ApiRequest.objects.acount() == 0


async def test_a_request_whose_server_died_is_repeated_later(program):
    await program.post("/runs", {"text": "6 * 7"}, idempotency_key="one")
    await ApiRequest.objects.aupdate(reference=None)

    soon = await program.post("/runs", {"text": "6 * 7"}, idempotency_key="one")
    old = timezone.now() - timedelta(minutes=6)
    await ApiRequest.objects.aupdate(created_at=old)
    later = await program.post("/runs", {"text": "6 * 7"}, idempotency_key="one")

    assert soon.status_code == 409
    assert soon.json()["code"] == "request_in_progress"
    assert later.status_code == 201
    async for run in Run.objects.all():
        await finished(program, run.pk)


async def test_files_are_uploaded_once(program):
    async def upload(content):
        file = SimpleUploadedFile("tea.txt", content)
        headers = {"Idempotency-Key": "one"}
        return await program.client.post("/api/v1/files", {"file": file}, headers=headers)

    first = await upload(b"Green tea")
    again = await upload(b"Green tea")
    other = await upload(b"Black tea")

    assert first.json()["id"] == again.json()["id"]
    assert other.status_code == 422


async def test_a_day_later_a_request_is_forgotten(program):
    await program.post("/runs", {"text": "6 * 7"}, idempotency_key="one")
    await program.post("/runs", {"text": "6 * 7"}, idempotency_key="two")
    old = timezone.now() - ApiRequest.REMEMBERED_FOR - timedelta(minutes=1)
    first = await ApiRequest.objects.order_by("pk").afirst()
    await ApiRequest.objects.filter(pk=first.pk).aupdate(created_at=old)

    again = await program.post("/runs", {"text": "6 * 8"}, idempotency_key="one")
    await ApiRequest.objects.aupdate(created_at=old)
    await database.run(retention.prune)

    assert again.status_code == 201
    assert await ApiRequest.objects.acount() == 0
    async for run in Run.objects.all():
        await finished(program, run.pk)


async def test_every_response_says_what_is_left(connect):
    program = await connect("read", requests_per_minute=5)

    response = await program.get("/me")
    me = response.json()

    assert response.headers["RateLimit-Limit"] == "5"
    assert me["requests"] == {"per_minute": 5, "remaining": 4}
    assert me["key"]["scopes"] == ["read"]
    assert me["user"]["username"] == "ada"
    assert "expires_at" not in me["key"]


async def test_me_has_the_limits_of_the_user_and_the_key(program, person):
    daily = {"measure": "tokens", "window": "day"}
    await person.quotas.acreate(**daily, limit=1000)
    await Quota.objects.acreate(**daily, limit=500, api_key=program.key)

    me = (await program.get("/me")).json()

    tokens = [limit for limit in me["limits"] if limit["measure"] == "tokens"]
    assert {limit["of"]: limit["left"] for limit in tokens} == {"user": 1000, "key": 500}
    assert {limit["window"] for limit in tokens} == {"day"}


async def test_a_revoked_key_stops_at_once(program):
    await ApiKey.objects.aupdate(revoked_at=timezone.now())

    assert (await program.get("/me")).status_code == 401
