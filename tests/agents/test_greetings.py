"""Pages that come at once wait their turn, and those that are alike are shown the same."""

import asyncio

import pytest

from agents import greetings


async def test_what_several_want_before_it_is_begun_is_made_once_and_later_anew(monkeypatch):
    made, held = [], asyncio.Event()

    async def greet():
        made.append(len(made))
        await held.wait()
        return made[-1]

    async def busy():
        await held.wait()

    others = [asyncio.create_task(greetings.shared(f"busy {at}", busy)) for at in range(2)]
    await asyncio.sleep(0)
    early = [asyncio.create_task(greetings.shared("page", greet)) for _ in range(100)]
    await asyncio.sleep(0.01)
    assert not made
    held.set()
    await asyncio.gather(*others, *early)
    assert made == [0]

    await greetings.shared("page", greet)
    assert made == [0, 1]


async def test_only_a_few_are_made_at_once():
    now = most = 0

    async def greet():
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1

    await asyncio.gather(*(greetings.shared(at, greet) for at in range(20)))

    assert most == greetings.AT_ONCE


async def test_whoever_waits_too_long_or_behind_too_many_is_to_come_again(monkeypatch):
    monkeypatch.setattr(greetings, "WITHIN", 0.01)
    monkeypatch.setattr(greetings, "MOST_WAITING", 1)
    async with greetings.turn(), greetings.turn():
        waiting = asyncio.create_task(greetings.shared("late", asyncio.sleep))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert greetings.is_full()
        with pytest.raises(greetings.TooMany):
            await greetings.shared("one too many", asyncio.sleep)
        with pytest.raises(greetings.TooMany):
            await waiting
    assert not greetings.is_full()


async def test_one_who_leaves_takes_nothing_from_the_others():
    held = asyncio.Event()

    async def greet():
        await held.wait()
        return "shown"

    leaves, stays = (asyncio.create_task(greetings.shared("page", greet)) for _ in range(2))
    await asyncio.sleep(0.01)
    leaves.cancel()
    held.set()

    assert await stays == "shown"
