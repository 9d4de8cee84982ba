"""A few runs start at a time, in order of arrival."""

import asyncio

from agents.runs import admission
from agents.runs.admission import Admission


async def test_runs_start_a_few_at_a_time_in_order_of_arrival(monkeypatch):
    monkeypatch.setattr(admission, "AT_ONCE", 2)
    queue = Admission()
    let_in = []

    async def start(name):
        place = await queue.enter()
        let_in.append(name)
        return place

    tasks = [asyncio.create_task(start(name)) for name in "abcd"]
    await asyncio.sleep(0)
    assert let_in == ["a", "b"]
    (await tasks[0]).leave()
    await asyncio.sleep(0)
    assert let_in == ["a", "b", "c"]
    (await tasks[1]).leave()
    (await tasks[1]).leave()  # leaving twice gives one place
    await asyncio.sleep(0)
    assert let_in == ["a", "b", "c", "d"]
    for task in tasks:
        (await task).leave()


async def test_a_start_that_waits_for_a_server_gives_its_place_away(monkeypatch):
    monkeypatch.setattr(admission, "AT_ONCE", 1)
    monkeypatch.setattr(admission, "MAX_SECONDS", 0.02)
    queue = Admission()

    slow = await queue.enter()
    second = await asyncio.wait_for(queue.enter(), 10)

    slow.leave()  # it has none any more
    third = asyncio.create_task(queue.enter())
    await asyncio.sleep(0)
    assert not third.done()
    second.leave()
    (await third).leave()


async def test_a_run_that_is_stopped_before_its_start_takes_no_place(monkeypatch):
    monkeypatch.setattr(admission, "AT_ONCE", 1)
    queue = Admission()
    first = await queue.enter()
    stopped = asyncio.create_task(queue.enter())
    await asyncio.sleep(0)

    stopped.cancel()
    await asyncio.wait([stopped])
    first.leave()

    (await asyncio.wait_for(queue.enter(), 10)).leave()
