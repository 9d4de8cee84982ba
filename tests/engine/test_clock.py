"""Durations are measured by a monotonic clock, regardless of the wall clock."""

from datetime import UTC, datetime, timedelta

import pytest

from agents.engine import ToolResult, clock
from agents.engine.events import EventFactory, EventType
from agents.engine.testing import Says
from tests.engine.conftest import Echo

HOUR = timedelta(hours=1)


class Wall:
    """A wall clock that can be set."""

    def __init__(self):
        self.off = timedelta()

    def now(self, zone):
        return datetime.now(zone) + self.off


@pytest.fixture
def wall(monkeypatch):
    wall = Wall()
    monkeypatch.setattr(clock, "datetime", wall)
    return wall


def seconds(events):
    [ended] = [e for e in events if e.type is EventType.STEP and e.data["kind"] == "tool"]
    started = datetime.fromisoformat(ended.data["started"])
    return (datetime.fromisoformat(ended.data["ended"]) - started).total_seconds()


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_setting_the_system_clock_does_not_change_durations(agent, wall, jump):
    async def jumps(input):
        wall.off = jump
        return ToolResult("done")

    runtime = agent(Says.call("echo", text="a"), Says(answer="Done."), tools=[Echo(does=jumps)])

    events = [event async for event in runtime.stream("Go.")]

    assert 0 <= seconds(events) < 5
    times = [event.time for event in events]
    assert times == sorted(times)
    assert (times[-1] - times[0]).total_seconds() < 5


def test_the_next_run_uses_the_new_system_time(wall):
    before = EventFactory("a")
    wall.off = HOUR

    after = EventFactory("b")(EventType.STATUS)

    assert after.time - before(EventType.STATUS).time > HOUR / 2


async def test_event_times_never_go_back_when_a_run_resumes(agent, wall):
    class Asks(Echo):
        needs_approval = True

    paused = [e async for e in agent(Says.call("echo", text="a"), tools=[Asks()]).stream("Go.")]
    wall.off = -HOUR

    again = [e async for e in agent(tools=[Asks()]).resume(paused)]

    assert all(event.time >= paused[-1].time for event in again)
    assert datetime.now(UTC) - paused[-1].time < HOUR
