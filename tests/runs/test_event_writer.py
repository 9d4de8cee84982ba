"""Events are saved, then published; one failure doesn't affect the others."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, OperationalError

from agents.engine.events import EventFactory, EventType
from agents.engine.loop.termination import StopReason
from agents.models import Run, RunEvent
from agents.runs import event_store, event_writer, pubsub
from agents.runs.event_writer import EventWriter, RunIsOver

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture
async def journal():
    journal = EventWriter()
    yield journal
    await journal.stop()


@pytest.fixture
def run(db):
    return Run.objects.create(topic="chat.1", query="6 * 7", agent_name="helper")


@pytest.fixture
def told(monkeypatch):
    """Published events, and whether they were saved by then."""
    told = []

    async def publish(topic, kind, *, run, events):
        kept = RunEvent.objects.filter(run=run, seq=events[-1]["seq"])
        told.append((run, [event["seq"] for event in events], await kept.aexists()))

    monkeypatch.setattr(pubsub, "publish", publish)
    return told


async def numbers(run):
    return [seq async for seq in run.events.order_by("seq").values_list("seq", flat=True)]


async def test_events_are_saved_in_order_before_they_are_published(journal, run, told):
    emit = EventFactory("helper")
    events = [emit(EventType.DELTA, content=str(at), step=1) for at in range(30)]
    await asyncio.gather(*(journal.add(run, event) for event in events))

    assert [seq for _, seqs, _ in told for seq in seqs] == list(range(1, 31))
    assert all(kept for _, _, kept in told)
    assert await numbers(run) == list(range(1, 31))


async def test_an_invalid_event_does_not_affect_others(journal, run, told):
    other = await Run.objects.acreate(topic="chat.2", query="1 + 1")
    emit = EventFactory("helper")
    good = emit(EventType.DELTA, content="a")
    bad = emit(EventType.STATUS, kind="retry")  # its step is missing
    both = [journal.add(run, good), journal.add(run, bad), journal.add(other, good)]

    first, second, third = await asyncio.gather(*both, return_exceptions=True)

    assert (first, third) == (None, None)
    assert isinstance(second, KeyError)
    assert (await numbers(run), await numbers(other)) == ([1], [1])
    assert [seqs for _, seqs, _ in told] == [[1], [1]]


async def test_a_duplicate_event_number_is_saved_once(journal, run, told):
    event = EventFactory("helper")(EventType.DELTA, content="a")
    await journal.add(run, event)

    with pytest.raises(IntegrityError):
        await journal.add(run, event)
    assert await numbers(run) == [1]


async def test_nothing_is_added_to_a_run_that_was_closed(journal, run):
    emit = EventFactory("helper")
    await journal.add(run, emit(EventType.DELTA, content="a", step=1))
    await journal.close(run, event_store.Ending(StopReason.CANCELLED))

    with pytest.raises(RunIsOver):
        await journal.add(run, emit(EventType.DELTA, content="b", step=1))
    await run.arefresh_from_db()
    assert (run.status, run.answer) == ("stopped", "a")
    assert await numbers(run) == [1, 2]


async def test_a_former_lease_owner_cannot_write(journal, run):
    former = await Run.objects.aget(pk=run.pk)
    run.epoch += 1
    await run.asave()
    emit = EventFactory("helper")
    events = [emit(EventType.DELTA, content=text, step=1) for text in ("mine", "yours")]

    kept = [journal.add(run, events[0]), journal.add(former, events[1])]
    found = await asyncio.gather(*kept, return_exceptions=True)

    assert found[0] is None
    assert isinstance(found[1], RunIsOver)
    assert await numbers(run) == [1]


async def test_a_run_that_ends_while_being_closed_ends_once(journal, run):
    emit = EventFactory("helper")
    data = {"answer": "42", "detail": "", "advice": "", "turns": 1, "tool_calls": 0}
    end = emit(EventType.RUN_FINISHED, stopped_reason="completed", **data)
    close = journal.close(run, event_store.Ending(StopReason.CANCELLED))

    await asyncio.gather(close, journal.add(run, end))

    await run.arefresh_from_db()
    assert run.status == "completed"
    assert await run.events.filter(type="run_finished").acount() == 1


async def test_a_commit_with_a_lost_confirmation_is_not_repeated(journal, run, monkeypatch):
    commit, troubles = event_writer._commit_batch, [OperationalError("no answer")]

    def commit_then_fail(batch, **about):
        commit(batch, **about)
        if troubles:
            raise troubles.pop()

    monkeypatch.setattr(event_writer, "_commit_batch", commit_then_fail)
    await journal.add(run, EventFactory("helper")(EventType.DELTA, content="a", step=1))

    assert await RunEvent.objects.filter(run=run).acount() == 1


async def test_an_ending_with_invalid_characters_still_ends_the_run(journal, run):
    sentence = "The tool said \0 and half of \ud83d."
    await journal.close(run, event_store.Ending(StopReason.ERROR, sentence))

    run = await Run.objects.aget(pk=run.pk)
    assert run.status == "failed"
    assert run.detail.startswith("The tool said")


async def test_closing_a_deleted_run_does_nothing(journal, run):
    await Run.objects.all().adelete()

    await journal.close(run, event_store.Ending(StopReason.CANCELLED))

    assert not await RunEvent.objects.aexists()


async def test_events_that_arrive_during_a_write_are_one_batch(journal, run, monkeypatch):
    batches = []
    commit = event_writer._commit
    monkeypatch.setattr(event_writer, "_commit", lambda b: (batches.append(len(b)), commit(b)))
    emit = EventFactory("helper")
    await asyncio.gather(
        *(journal.add(run, emit(EventType.DELTA, content="a")) for _ in range(100))
    )

    assert sum(batches) == 100
    assert len(batches) <= 3
    assert await sync_to_async(event_store.last_seq)(run) == 100
