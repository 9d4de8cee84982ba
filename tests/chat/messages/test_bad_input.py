"""Whatever a page sends, it gets a message back, and the next one is answered."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.models import Agent, Run
from chat.messages import queue
from chat.models import ChatSession, Message
from tests.conftest import as_async_user, frames_until, tab
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

FINISHED = 'class="run" data-status="completed"'
NOTHING = "Enter a message first."
UNREADABLE = "The page sent an invalid request. Reload it and try again."


def message(text="6 * 7", client_id="bad", **more):
    return json.dumps({"type": "message", "text": text, "client_id": client_id, **more})


FRAMES = {
    "empty": (message(""), NOTHING),
    "blanks": (message(" \t\n\u3000\u00a0 "), NOTHING),
    "zero width": (message("\u200b\u200d\ufeff\u2060"), NOTHING),
    "only NUL": (message("\0\0"), NOTHING),
    "only controls": (message("\x07\x1b"), NOTHING),
    "too long": (message("x" * 200_001), "This message is too long (200 kB)"),
    "too long in bytes": (message("足" * 70_000), "This message is too long (210 kB)"),
    "a frame too long": (message("x" * 1_100_000), "This message is too long to send."),
    "not JSON": ("{", UNREADABLE),
    "an array": ("[1, 2]", UNREADABLE),
    "a number": ("5", UNREADABLE),
    "null": ("null", UNREADABLE),
    "a string": ('"message"', UNREADABLE),
    "a deep one": ("[" * 100_000, UNREADABLE),
    "a number of many digits": ('{"a": ' + "9" * 5_000 + "}", UNREADABLE),
    "unknown type": ('{"type": "dance"}', UNREADABLE),
    "no type": ("{}", UNREADABLE),
    "type is a list": ('{"type": ["message"]}', UNREADABLE),
    "type is half a character": (r'{"type": "\ud800"}', UNREADABLE),
    "text is a number": (message(5), UNREADABLE),
    "text is missing": ('{"type": "message", "client_id": "bad"}', UNREADABLE),
    "id is a list": (message(client_id=[]), UNREADABLE),
    "id is empty": (message(client_id=""), UNREADABLE),
    "id is long": (message(client_id="x" * 65), UNREADABLE),
    "id is half a character": (message(client_id="\ud800"), UNREADABLE),
    "id has NUL": (message(client_id="a\0b"), UNREADABLE),
    "run is an object": ('{"type": "stop", "run": {}}', UNREADABLE),
    "run is null": ('{"type": "stop", "run": null}', UNREADABLE),
    "nothing to withdraw": ('{"type": "withdraw"}', UNREADABLE),
    "a list to send now": ('{"type": "send_now", "message": [1]}', UNREADABLE),
    "an unknown scope": (
        '{"type": "delete_message", "message": "1", "scope": "all"}',
        UNREADABLE,
    ),
    "unknown effort": (message(effort="\ud800"), UNREADABLE),
    "temperature is a list": (message(temperature=[]), "Enter a temperature between 0 and 2."),
    "unknown agent": (message(agent="nobody"), "This agent is no longer available."),
    "half an agent": (message(agent="\ud800"), "This agent is no longer available."),
}


async def test_an_invalid_frame_gets_an_error_and_the_socket_stays_open(chat, caplog):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        for frame, sentence in FRAMES.values():
            await page.send_to(text_data=frame)
            assert sentence in await page.receive_from(10)
        assert not await Message.objects.aexists()
        await page.send_to(text_data=message(client_id="good"))
        await frames_until(page, FINISHED)

    assert not [record for record in caplog.records if record.exc_info]


async def test_a_binary_frame_gets_an_error_and_the_socket_stays_open(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_to(bytes_data=b"\x00\xff")
        await frames_until(page, "This page accepts text only.")
        await page.send_to(text_data=message())
        await frames_until(page, FINISHED)


async def test_other_values_than_text_for_an_agent_model_or_files_are_ignored(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_to(text_data=message(agent=5, model=[], files={}, HEADERS={"a": None}))
        await frames_until(page, FINISHED)

    await chat.arefresh_from_db()
    assert chat.options == {}


async def test_the_page_of_a_run_ignores_frames(chat):
    run = await Run.objects.acreate(topic=chat.topic, query="6 * 7", user=chat.user)
    async with tab(chat.user, f"/ws/runs/{run.pk}/") as page:
        await frames_until(page, f'id="run-{run.pk}"')
        for frame, _sentence in FRAMES.values():
            await page.send_to(text_data=frame)
        assert await page.receive_nothing()


async def test_stopping_an_invalid_run_does_nothing(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        for run in ["-1", "x", "", str(2**63), 2**63, -1, True, "９", "1" * 50]:
            await page.send_json_to({"type": "stop", "run": run})
            assert 'data-live-run=""' in await page.receive_from(10)


@pytest.mark.parametrize("after", [b"\xff\xfe", b"-1", b"9" * 40])
async def test_a_page_with_an_invalid_state_is_sent_everything(chat, after):
    run = await Run.objects.acreate(topic=chat.topic, query="6 * 7", status="completed")
    await Message.objects.acreate(
        session=chat, author=chat.user, run=run, text="6 * 7", client_id="a"
    )
    async with tab(chat.user, f"/ws/chat/{chat.pk}/", query=b"after=" + after) as page:
        frames = await frames_until(page, "composer-state")

    assert "6 * 7" in "".join(frames)


@pytest.mark.parametrize(
    ("text", "kept"),
    one_in(
        4,
        [
            ("6 * 7\0", "6 * 7"),
            ("half \ud83d of it", "half ? of it"),
            ("\u202etfel ot thgir", "\u202etfel ot thgir"),
            ("  足跡 👣  ", "足跡 👣"),
            ("<script>alert(1)</script>", "<script>alert(1)</script>"),
            ("{{ 7 * 7 }}{% debug %}", "{{ 7 * 7 }}{% debug %}"),
        ],
    ),
)
async def test_unusual_text_is_saved_without_invalid_characters(chat, text, kept):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_to(text_data=message(text, "strange"))
        frames = await frames_until(page, 'data-client-id="strange"')

    assert (await Message.objects.aget()).text == kept
    assert "<script>" not in "".join(frames)


async def test_an_id_used_in_another_session_loses_no_text(chat):
    other = await ChatSession.objects.acreate(user=chat.user, title="Other")
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_to(text_data=message(client_id="once"))
        await frames_until(page, FINISHED)
    async with tab(chat.user, f"/ws/chat/{other.pk}/") as page:
        await page.send_to(text_data=message("Another question", client_id="once"))
        frames = await frames_until(page, UNREADABLE)

    assert 'data-client-id="once"' not in "".join(frames)


async def test_a_reused_id_with_another_text_is_rejected(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_to(text_data=message(client_id="once"))
        await frames_until(page, FINISHED)
        await page.send_to(text_data=message("Another question", client_id="once"))
        refused = await frames_until(page, 'data-refused="once"')
        await page.send_to(text_data=message(client_id="once"))
        await frames_until(page, 'data-acknowledged="once"')

    assert "Not sent: a different message was sent with the same ID." in "".join(refused)
    assert 'data-acknowledged="once"' not in "".join(refused)
    assert (await Message.objects.aget()).text == "6 * 7"


@pytest.mark.parametrize("path", ["/chat/", "/chat/{}/messages/"])
async def test_a_reused_id_with_another_text_keeps_the_text_over_http(chat, path):
    first, again, other = [
        await post_form(chat.user, path.format(chat.pk), text=text, client_id="once")
        for text in ("6 * 7", "6 * 7", "Another question")
    ]

    assert [first.status_code, again.status_code, other.status_code] == [302, 302, 422]
    assert ">Another question</textarea>" in other.text
    assert await Message.objects.acount() == 1


async def test_a_text_that_was_saved_masked_counts_as_the_same(chat):
    await Agent.objects.aupdate(personal_data=Agent.PersonalData.UNKEPT)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        for _ in range(2):
            await page.send_to(text_data=message("Write to ann@example.org", client_id="once"))
        await frames_until(page, 'data-acknowledged="once"')

    assert "ann@example.org" not in (await Message.objects.aget()).text


async def test_without_an_agent_there_is_an_error_message(chat):
    await Agent.objects.aupdate(enabled=False)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_to(text_data=message())
        await frames_until(page, "No agent is enabled.")


async def test_a_page_over_the_rate_limit_is_told_once_and_stays_open(chat, monkeypatch):
    monkeypatch.setattr("chat.live.consumers.FRAME_BURST", 5)
    path = f"/ws/chat/{chat.pk}/"
    async with tab(chat.user, path) as page, tab(chat.user, path) as other:
        await frames_until(page, "composer-state")
        for _ in range(500):
            await page.send_to(text_data="{")
        frames = await frames_until(page, "Too many requests.")
        await other.send_to(text_data=message(client_id="other"))
        await frames_until(other, FINISHED)
        answered = [frame for frame in frames if UNREADABLE in frame]
        await asyncio.sleep(0.2)
        await page.send_to(text_data=message(client_id="later"))
        await frames_until(page, 'data-client-id="later"')

    assert len(answered) < 10


# The same without a socket


async def post_form(user, path, **fields):
    client = await as_async_user(user)
    return await client.post(path, fields)


POSTS = [
    ("", "a", NOTHING),
    ("\u200b\u200b", "a", NOTHING),
    ("\0", "a", NOTHING),
    ("y" * 200_001, "a", "This message is too long (200 kB)"),
    ("Tell me & mine", "x" * 65, UNREADABLE),
    ("Tell me & mine", "a\0b", UNREADABLE),
]


@pytest.mark.parametrize("path", ["/chat/", "/chat/{}/messages/"])
async def test_an_invalid_post_returns_the_page_with_its_input(chat, path):
    for text, client_id, sentence in POSTS:
        answer = await post_form(
            chat.user, path.format(chat.pk), text=text, client_id=client_id
        )
        page = answer.text

        assert answer.status_code == 422
        assert sentence in page
        assert text[:200_000].replace("&", "&amp;") in page
    assert not await Message.objects.aexists()


async def test_an_oversized_post_gets_a_plain_error_page(chat):
    answer = await post_form(chat.user, "/chat/", text="y" * 2_000_000)

    assert answer.status_code == 413
    assert "Too large" in answer.text


async def test_a_post_to_a_full_queue_keeps_the_text(chat, monkeypatch):
    monkeypatch.setattr(queue, "MAX_QUEUED", 0)
    await sync_to_async(runs.prepare)(query="6 * 7", topic=chat.topic, user=chat.user)

    answer = await post_form(chat.user, f"/chat/{chat.pk}/messages/", text="Do not lose me")

    assert answer.status_code == 422
    assert "0 messages are already queued." in answer.text
    assert "Do not lose me</textarea>" in answer.text


async def test_a_post_without_an_agent_keeps_the_text(chat):
    await Agent.objects.aupdate(enabled=False)

    answer = await post_form(chat.user, "/chat/", text="Do not lose me")

    assert answer.status_code == 422
    assert "No agent is enabled." in answer.text
    assert "Do not lose me</textarea>" in answer.text
    assert await ChatSession.objects.acount() == 1


@pytest.mark.parametrize("path", one_in(3, ["/chat/sessions/", "/traces/", "/"]))
async def test_any_search_returns_a_page(chat, path):
    client = await as_async_user(chat.user)
    await Run.objects.acreate(topic="x", query="6 * 7", user=chat.user)

    for query in ["%_\\", "\0", "'\";--", "x" * 60_000, "a " * 5_000, "\u202e", "%ED%A0%80"]:
        assert (await client.get(path, {"q": query})).status_code == 200


async def test_an_invalid_filter_returns_a_page(chat):
    client = await as_async_user(chat.user)

    for query in ["status=dance", "page=-1", "page=x", "page=999", "before=x"]:
        assert (await client.get(f"/traces/?{query}")).status_code == 200, query
        assert (await client.get(f"/chat/{chat.pk}/?{query}")).status_code == 200, query
