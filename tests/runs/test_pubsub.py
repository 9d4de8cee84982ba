"""Every notification is received once, from any process."""

import asyncio
from datetime import UTC, datetime

import pytest
from channels.layers import InMemoryChannelLayer, channel_layers

from agents.models import Run, RunEvent
from agents.runs import pubsub

pytestmark = pytest.mark.both_databases

NOW = datetime(2026, 11, 19, tzinfo=UTC)
TOLD = {"type": "told", "by": "another", "kind": "run.events", "facts": '{"run": 7}'}


class SharedLayer:
    """A layer shared with other processes; here one in memory that hides that it is."""

    def __init__(self):
        self.inner = InMemoryChannelLayer()

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.fixture
def shared():
    layer = SharedLayer()
    before = channel_layers.set("default", layer)
    yield layer
    channel_layers.set("default", before)


class Ear:
    """Records what it receives."""

    def __init__(self):
        self.notes = asyncio.Queue()

    def hear(self, kind, facts):
        self.notes.put_nowait((kind, facts))

    async def heard(self):
        return await asyncio.wait_for(self.notes.get(), 5)


async def test_all_local_subscribers_get_the_same_message():
    one, other = [], []
    async with (
        pubsub.subscribe("chat.1", lambda *told: one.append(told)),
        pubsub.subscribe("chat.1", lambda *told: other.append(told)),
    ):
        await pubsub.publish("chat.1", "run.events", run=7)
        await pubsub.publish("chat.2", "run.events", run=8)

    assert one == other == [("run.events", {"run": 7})]
    assert one[0][1] is other[0][1]


async def test_a_former_subscriber_gets_no_messages():
    notes = []
    async with pubsub.subscribe("chat.1", lambda *told: notes.append(told)):
        pass
    await pubsub.publish("chat.1", "run.events", run=7)

    assert notes == []
    assert not pubsub._topics


async def test_messages_of_other_processes_are_received(shared):
    ear = Ear()
    async with pubsub.subscribe("chat.1", ear.hear):
        await shared.group_send("chat.1", TOLD)

        assert await ear.heard() == ("run.events", {"run": 7})


async def test_local_messages_are_received_once_and_sent_to_other_processes(shared):
    ear, channel = Ear(), await shared.new_channel()
    await shared.group_add("chat.1", channel)
    async with pubsub.subscribe("chat.1", ear.hear):
        await pubsub.publish("chat.1", "run.events", run=8)
        await shared.group_send("chat.1", TOLD)

        assert await ear.heard() == ("run.events", {"run": 8})
        assert await ear.heard() == ("run.events", {"run": 7})
    assert (await shared.receive(channel))["by"] == pubsub.PROCESS_TOKEN


async def test_subscribers_refresh_after_a_channel_layer_failure(shared, monkeypatch, caplog):
    async def broken(channel):
        monkeypatch.undo()
        raise ConnectionError("no layer")

    ear = Ear()
    monkeypatch.setattr(pubsub, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(shared, "receive", broken, raising=False)
    async with pubsub.subscribe("chat.1", ear.hear):
        assert await ear.heard() == (pubsub.REFRESH_KIND, {})
        await shared.group_send("chat.1", TOLD)
        assert await ear.heard() == ("run.events", {"run": 7})

    assert "Can't receive messages from other processes" in caplog.text


@pytest.mark.parametrize("trouble", ["hangs", "fails"])
async def test_local_messages_work_without_the_channel_layer(shared, monkeypatch, trouble):
    async def group_send(topic, told):
        if trouble == "fails":
            raise ConnectionError("gone")
        await asyncio.sleep(60)

    monkeypatch.setattr(pubsub, "_remote", pubsub._RemoteProcesses())
    monkeypatch.setattr(pubsub, "SEND_TIMEOUT_SECONDS", 0.05)
    shared.group_send = group_send
    heard = []
    async with asyncio.timeout(5), pubsub.subscribe("chat.1", lambda *told: heard.append(told)):
        for number in range(100):
            await pubsub.publish("chat.1", "run.events", run=number)

    assert len(heard) == 100


async def test_a_hanging_channel_layer_does_not_block_subscribing(shared, monkeypatch):
    async def group_add(topic, channel):
        await asyncio.sleep(60)

    monkeypatch.setattr(pubsub, "JOIN_TIMEOUT_SECONDS", 0.05)
    shared.group_add = group_add
    heard = []
    async with asyncio.timeout(5), pubsub.subscribe("chat.1", lambda *told: heard.append(told)):
        await pubsub.publish("chat.1", "run.events", run=7)

    assert heard == [("run.events", {"run": 7})]


@pytest.mark.django_db(transaction=True)
async def test_published_text_is_not_read_again_and_gaps_are_filled():
    run = await Run.objects.acreate(query="Hi", topic="chat.9")
    texts = [
        RunEvent(
            run=run, seq=seq, type="delta", time=NOW, data={"content": str(seq), "step": 1}
        )
        for seq in (1, 2, 3, 4)
    ]
    await texts[0].asave()

    async def publish(row):
        await pubsub.publish(
            run.topic, pubsub.EVENTS_KIND, run=run.pk, events=[row.value.to_dict()]
        )

    events = pubsub.events(run)
    assert (await anext(events)).seq == 1
    waiting = asyncio.create_task(anext(events))
    await asyncio.sleep(0.2)
    await publish(texts[1])  # not saved: only the message has it
    assert (await waiting).data == {"content": "2", "step": 1}
    await RunEvent.objects.abulk_create(texts[1:])
    waiting = asyncio.create_task(anext(events))
    await asyncio.sleep(0.05)
    await publish(texts[3])  # the third was lost on the way
    assert (await waiting).seq == 3
    assert (await anext(events)).seq == 4
    await events.aclose()
