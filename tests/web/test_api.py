"""A run's event stream for other programs."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.engine.testing import Says
from agents.runs import pubsub
from tests.conftest import run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def read(answer):
    """Return the events of a stream, as fields."""
    text = "".join([part.decode() async for part in answer.streaming_content])
    assert text.endswith("\n\n") or not text
    blocks = [block for block in text.split("\n\n")[:-1] if not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


async def test_a_finished_run_is_streamed_to_its_end(person_async_client, person):
    run = await run_question("6 * 7", user=person)

    answer = await person_async_client.get(f"/api/runs/{run.pk}/events/")
    events = await read(answer)

    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert [event["id"] for event in events] == [str(at + 1) for at in range(len(events))]
    assert (events[0]["event"], events[-1]["event"]) == ("run_started", "run_finished")
    assert set(json.loads(events[0]["data"])) == {"time", "agent", "type", "data", "seq"}
    assert json.loads(events[-1]["data"])["data"]["answer"] == run.answer


@pytest.mark.parametrize("way", ["header", "query"])
async def test_a_stream_resumes_after_the_last_event_id(person_async_client, person, way):
    run = await run_question("6 * 7", user=person)
    header = {"Last-Event-ID": "3"} if way == "header" else {}
    query = "" if way == "header" else "?after=3"

    answer = await person_async_client.get(f"/api/runs/{run.pk}/events/{query}", headers=header)
    events = await read(answer)

    assert events[0]["id"] == "4"
    assert events[-1]["event"] == "run_finished"


async def test_an_invalid_event_id_starts_at_the_beginning(person_async_client, person):
    run = await run_question("6 * 7", user=person)
    path = f"/api/runs/{run.pk}/events/"

    for after in ["x", "-1", "", "1.5", "²", "9" * 40]:
        answer = await person_async_client.get(path, headers={"Last-Event-ID": after})
        assert (await read(answer))[0]["id"] == "1", after


async def test_an_event_id_after_the_end_returns_nothing(person_async_client, person):
    run = await run_question("6 * 7", user=person)

    assert (
        await read(await person_async_client.get(f"/api/runs/{run.pk}/events/?after=999")) == []
    )


async def test_a_live_run_is_streamed_without_notifications(
    person_async_client, person, scripted, monkeypatch
):
    async def lose(topic, kind, **facts):
        """A channel layer that loses everything."""

    monkeypatch.setattr(pubsub, "publish", lose)
    monkeypatch.setattr(pubsub, "IDLE_SECONDS", 0.02)
    scripted(Says.call("calculator", input="6 * 7"), Says(answer="It is 42."))
    run = await sync_to_async(runs.prepare)(query="What is it?", topic="chat.1", user=person)
    answer = await person_async_client.get(f"/api/runs/{run.pk}/events/")
    reading = asyncio.create_task(read(answer))
    await asyncio.sleep(0.05)
    runs.launch(run)

    async with asyncio.timeout(10):
        events = await reading

    assert [event["id"] for event in events] == [str(at + 1) for at in range(len(events))]
    assert [e["event"] for e in events].count("run_finished") == 1
    assert events[-1]["event"] == "run_finished"


async def test_line_breaks_in_data_are_escaped(person_async_client, person, scripted):
    scripted(Says(answer="one\n\ntwo\r\u2028three"))
    run = await run_question("What is it?", user=person)

    events = await read(await person_async_client.get(f"/api/runs/{run.pk}/events/"))

    assert json.loads(events[-1]["data"])["data"]["answer"] == "one\n\ntwo\r\u2028three"
