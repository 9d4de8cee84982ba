"""Pages that connect at once wait their turn, and identical ones share their frames."""

import asyncio

import pytest

from agents.web.consumers import first_frames


async def test_concurrent_requests_share_one_rendering_and_later_ones_render_again(monkeypatch):
    made, held = [], asyncio.Event()

    async def greet():
        made.append(len(made))
        await held.wait()
        return made[-1]

    async def busy():
        await held.wait()

    others = [
        asyncio.create_task(first_frames.run_shared(f"busy {at}", busy)) for at in range(2)
    ]
    await asyncio.sleep(0)
    early = [asyncio.create_task(first_frames.run_shared("page", greet)) for _ in range(100)]
    await asyncio.sleep(0.01)
    assert not made
    held.set()
    await asyncio.gather(*others, *early)
    assert made == [0]

    await first_frames.run_shared("page", greet)
    assert made == [0, 1]


async def test_the_number_of_concurrent_renderings_is_limited():
    now = most = 0

    async def greet():
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1

    await asyncio.gather(*(first_frames.run_shared(at, greet) for at in range(20)))

    assert most == first_frames.MAX_CONCURRENT


async def test_a_request_that_waits_too_long_is_told_to_retry(monkeypatch):
    monkeypatch.setattr(first_frames, "TIMEOUT_SECONDS", 0.01)
    monkeypatch.setattr(first_frames, "MAX_WAITING", 1)
    async with first_frames.acquire_slot(), first_frames.acquire_slot():
        waiting = asyncio.create_task(first_frames.run_shared("late", asyncio.sleep))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert first_frames.is_full()
        with pytest.raises(first_frames.TooManyWaiting):
            await first_frames.run_shared("one too many", asyncio.sleep)
        with pytest.raises(first_frames.TooManyWaiting):
            await waiting
    assert not first_frames.is_full()


async def test_a_cancelled_request_does_not_cancel_the_shared_rendering():
    held = asyncio.Event()

    async def greet():
        await held.wait()
        return "shown"

    leaves, stays = (
        asyncio.create_task(first_frames.run_shared("page", greet)) for _ in range(2)
    )
    await asyncio.sleep(0.01)
    leaves.cancel()
    held.set()

    assert await stays == "shown"
