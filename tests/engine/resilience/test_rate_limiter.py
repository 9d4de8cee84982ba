"""Rate limits: a token bucket, and runs that wait in a model's line."""

import asyncio
from contextlib import asynccontextmanager

from agents.engine import ReActPlanner
from agents.engine.resilience import Limits, QueuePlace, TokenBucket
from agents.engine.testing import Says, ScriptedModel
from tests.engine.loop.test_model_call import collect, failure, model_call, planner


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class ScriptedLimiter:
    """Lets a request wait at these places, and then run, or give up if it is busy."""

    def __init__(self, *places, limits, is_busy=False):
        self.script = [QueuePlace(*place) for place in places]
        self.limits = limits
        self.is_busy = is_busy
        self.tokens = 0

    @asynccontextmanager
    async def request(self, model):
        yield self

    async def places(self):
        for place in self.script:
            yield place
            await asyncio.sleep(0.02)
        if self.is_busy:
            raise self.limits.busy("fast", place.limit)

    def spend(self, tokens):
        self.tokens += tokens


def limited_planner(limiter, *script):
    return ReActPlanner(ScriptedModel(*script), "fast", rate_limiter=limiter)


def notes(events):
    return [e.data for e in events if e.type == "status" and e.data["kind"] == "limited"]


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


def test_a_token_bucket_continues_with_what_was_saved():
    clock = Clock()
    bucket = TokenBucket(3, 2.0, used=5, since=clock.now - 1, clock=clock)

    assert bucket.used == 3
    assert bucket.seconds_until_free() == 0.5


def test_a_token_bucket_ignores_a_clock_that_was_set_back():
    clock = Clock()
    bucket = TokenBucket(3, 2.0, used=3, since=clock.now + 60, clock=clock)

    assert bucket.used == 3


async def test_a_run_reports_that_it_waits_for_the_rate_limit():
    limiter = ScriptedLimiter((1, "concurrency"), limits=Limits(concurrency=1))

    first, last = notes(
        await collect(model_call(limited_planner(limiter, Says(answer="Yes."))))
    )

    facts = {"kind": "limited", "limit": "concurrency", "most": 1, "model": "fast", "step": 1}
    assert facts.items() <= first.items()
    assert (first["place"], last["place"]) == (1, 0)
    assert last["waited"] > 0


async def test_the_usage_of_an_answer_counts_for_the_next_request():
    limiter = ScriptedLimiter(limits=Limits(tokens=1))
    await collect(model_call(limited_planner(limiter, Says(answer="Yes."))))

    assert limiter.tokens > 0


async def test_a_request_that_waits_too_long_fails_without_counting_as_an_outage():
    limits = Limits(tokens=1, patience=0.02)
    limiter = ScriptedLimiter((1, "tokens"), limits=limits, is_busy=True)

    error = await failure(model_call(limited_planner(limiter)))

    assert "limit of 1 tokens per minute" in str(error)
    assert not error.is_outage


async def test_the_fallback_model_is_used_when_waiting_times_out():
    limiter = ScriptedLimiter((1, "requests"), limits=Limits(requests=1), is_busy=True)

    events = await collect(
        model_call(limited_planner(limiter), planner("other", Says(answer="Yes.")))
    )

    replaced = [e.data for e in events if e.data.get("kind") == "model_fallback"]
    assert [(data["from"], data["to"]) for data in replaced] == [("fast", "other")]


async def test_a_model_without_limits_has_no_rate_limiter():
    assert not Limits()
    assert notes(await collect(model_call(planner("a", Says(answer="Yes."))))) == []
