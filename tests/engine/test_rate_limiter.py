"""Rate limits: excess requests wait in order."""

import asyncio

import pytest

from agents.engine import ReActPlanner
from agents.engine.errors import ModelBusy
from agents.engine.resilience.rate_limiter import (
    Limits,
    LocalRateLimiter,
    TokenBucket,
    acquire_slot,
)
from agents.engine.testing import Says, ScriptedModel
from tests.engine.test_model_call import collect, failure, model_call, planner


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def limited_planner(gate, *script):
    return ReActPlanner(ScriptedModel(*script), "fast", rate_limiter=gate)


def notes(events):
    return [e.data for e in events if e.type == "status" and e.data["kind"] == "limited"]


async def use_slot(gate, order, name, leave):
    async with acquire_slot(gate, "fast"):
        order.append(name)
        await leave.wait()


async def test_slots_are_given_in_order_up_to_the_limit():
    gate, order, leave = LocalRateLimiter(Limits(concurrency=1)), [], asyncio.Event()
    visits = [asyncio.create_task(use_slot(gate, order, name, leave)) for name in "abc"]
    await asyncio.sleep(0)

    assert (order, gate.blocking_limit()) == (["a"], "concurrency")
    leave.set()
    await asyncio.gather(*visits)
    assert order == ["a", "b", "c"]
    assert gate.blocking_limit() is None


async def test_a_cancelled_waiter_does_not_block_the_queue():
    gate, order, leave = LocalRateLimiter(Limits(concurrency=1)), [], asyncio.Event()
    a, b, c = [asyncio.create_task(use_slot(gate, order, name, leave)) for name in "abc"]
    await asyncio.sleep(0)

    b.cancel()
    leave.set()
    await asyncio.wait([a, b, c])
    assert order == ["a", "c"]


def test_a_token_bucket_is_emptied_and_refilled():
    clock = Clock()
    bucket = TokenBucket(3, 2.0, clock=clock)

    assert [bucket.allows() for _ in range(4)] == [True, True, True, False]
    assert bucket.seconds_until_free() == 0.5
    clock.now += 0.5
    assert [bucket.allows() for _ in range(2)] == [True, False]
    clock.now += 3600
    assert [bucket.allows() for _ in range(4)] == [True, True, True, False]


def test_a_token_bucket_repays_its_debt_first():
    clock = Clock()
    bucket = TokenBucket(10, 1.0, clock=clock)
    bucket.spend(25)

    assert bucket.seconds_until_free() == 16
    clock.now += 16
    assert bucket.allows()
    assert not bucket.allows()


async def test_requests_over_the_limit_wait_for_a_refill():
    clock = Clock()
    gate = LocalRateLimiter(Limits(requests=2, patience=0.05), clock=clock)
    for _ in range(2):
        async with acquire_slot(gate, "fast"):
            pass

    with pytest.raises(ModelBusy, match="limit of 2 requests per minute"):
        await acquire_slot(gate, "fast").__aenter__()
    clock.now += 30
    async with acquire_slot(gate, "fast"):
        assert gate.blocking_limit() == "requests"
    clock.now += 60
    assert gate.blocking_limit() is None


async def test_a_waiter_continues_when_the_bucket_is_refilled():
    gate = LocalRateLimiter(Limits(requests=1200, patience=5))
    gate._request_bucket.spend(1200)
    began = asyncio.get_running_loop().time()

    async with acquire_slot(gate, "fast"):
        assert asyncio.get_running_loop().time() - began > 0.03


async def test_tokens_over_the_limit_are_refilled_within_a_minute():
    clock = Clock()
    gate = LocalRateLimiter(Limits(tokens=100), clock=clock)
    gate.spend(120)

    assert gate.blocking_limit() == "tokens"
    clock.now += 12
    assert gate.blocking_limit() == "tokens"
    clock.now += 1
    assert gate.blocking_limit() is None


async def test_a_run_reports_that_it_waits_for_the_rate_limit():
    gate, leave = LocalRateLimiter(Limits(concurrency=1)), asyncio.Event()
    other = asyncio.create_task(use_slot(gate, [], "other", leave))
    await asyncio.sleep(0)

    hearing = asyncio.create_task(
        collect(model_call(limited_planner(gate, Says(answer="Yes."))))
    )
    await asyncio.sleep(0.05)
    leave.set()
    await other

    first, last = notes(await hearing)
    facts = {"kind": "limited", "limit": "concurrency", "most": 1, "model": "fast", "step": 1}
    assert facts.items() <= first.items()
    assert (first["place"], last["place"]) == (1, 0)
    assert last["waited"] > 0


async def test_the_usage_of_an_answer_counts_for_the_next_request():
    gate = LocalRateLimiter(Limits(tokens=1, patience=0.02))
    await collect(model_call(limited_planner(gate, Says(answer="Yes."))))

    error = await failure(model_call(limited_planner(gate)))

    assert "limit of 1 tokens per minute" in str(error)
    assert not error.is_outage


async def test_the_fallback_model_is_used_when_waiting_times_out():
    gate = LocalRateLimiter(Limits(requests=1, patience=0.02))
    async with acquire_slot(gate, "fast"):
        pass

    events = await collect(
        model_call(limited_planner(gate), planner("other", Says(answer="Yes.")))
    )

    replaced = [e.data for e in events if e.data.get("kind") == "model_fallback"]
    assert [(data["from"], data["to"]) for data in replaced] == [("fast", "other")]


async def test_a_model_without_limits_has_no_rate_limiter():
    assert not Limits()
    assert notes(await collect(model_call(planner("a", Says(answer="Yes."))))) == []
