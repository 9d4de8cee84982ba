"""A run replayed up to an event, and continued from there."""

import pytest

from agents.engine.events import Event, EventFactory, EventType, mark_replayed
from agents.engine.loop.run_state import rebuild
from agents.engine.state import AgentState
from tests.engine.loop.test_approval import _reload_event, collect_events
from tests.engine.loop.test_takeover import Reads, Writes, agent, check


async def record_run(dialect):
    whole = await collect_events(agent(dialect, Reads("read"), Writes("write")).stream("Go"))
    return [_reload_event(event) for event in whole]


def before(events, step):
    """Return the events before this step."""
    about = [event.data.get("step", 0) for event in events]
    return events[: about.index(step)]


@pytest.mark.parametrize("step", [2, 3, 4, 5])
async def test_replayed_calls_are_not_made_again(dialect, step):
    past = before(await record_run(dialect), step)
    read, write = Reads("read"), Writes("write")

    events = await collect_events(agent(dialect, read, write).rerun(past))

    check(events)
    assert events[-1].data["answer"] == "One and two."
    assert (len(read.inputs), len(write.inputs)) == (step <= 2, step <= 4)
    assert [event.seq for event in events if event.is_replayed] == [e.seq for e in past[1:]]


async def test_a_rerun_interrupted_during_replay_has_the_same_result(dialect):
    past = before(await record_run(dialect), 5)
    whole = await collect_events(agent(dialect, Reads("read"), Writes("write")).rerun(past))

    for cut in range(1, len(past)):
        read, write = Reads("read"), Writes("write")
        kept = [_reload_event(event) for event in whole[:cut]]
        events = [*kept, *await collect_events(agent(dialect, read, write).rerun(past, kept))]

        check(events)
        assert [event.type for event in events] == [event.type for event in whole]
        assert read.inputs == write.inputs == []


async def test_a_rerun_starts_with_its_own_tools(dialect):
    past = before(await record_run(dialect), 3)

    first, second, *_ = await collect_events(agent(dialect, Reads("read")).rerun(past))

    assert (first.type, first.data["query"]) == (EventType.RUN_STARTED, "Go")
    assert [tool["function"]["name"] for tool in first.data["tools"]] == ["read"]
    assert (first.is_replayed, second.is_replayed) == (False, True)


def test_replayed_usage_and_failures_do_not_count_for_the_rerun():
    emit = EventFactory("agent")
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10, "cost": 1.0}
    told: list[Event] = [
        emit(EventType.RUN_STARTED, query="Go"),
        mark_replayed(emit(EventType.USAGE, step=1, estimated=False, **usage)),
        mark_replayed(emit(EventType.STATUS, step=1, kind="degraded", tool="read")),
        mark_replayed(emit(EventType.STATUS, step=1, kind="model_fallback", to="other")),
    ]

    trail = rebuild(told, EventFactory("agent"), AgentState())

    assert trail.progress.used.total_tokens == 0
    assert (trail.out_of_order, trail.model, trail.is_degraded) == (set(), "", False)
