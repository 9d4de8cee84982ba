"""Calls of a model with limits wait in one line, also over several processes."""

import asyncio
import json
import subprocess
import sys
from contextlib import aclosing

import pytest
from django.db import connection
from django.utils import timezone

from agents.db import database
from agents.engine.errors import ModelBusy
from agents.engine.resilience import Limits
from agents.engine.resilience.rate_limiter import acquire_slot
from agents.metering.model_limits import SharedRateLimiter, queue_lengths
from agents.models import ModelGate, ModelSlot
from tests.metering.model_limits import limited_process
from tests.metering.model_limits.limited_process import LABEL

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

SECONDS = 60


@pytest.fixture
def start():
    """Start a process with this test's database: with work, or to hold a slot."""
    running = []

    def start_process(**work):
        database = {"NAME": str(connection.settings_dict["NAME"])}
        about = json.dumps({"database": database, "work": work})
        command = [sys.executable, "-m", limited_process.__name__, about]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        running.append(subprocess.Popen(command, **pipes))
        return running[-1]

    yield start_process
    for child in running:
        child.kill()
        child.communicate()


def most_at_once(spans):
    """Return how many spans overlap at most; one that ends frees its slot first."""
    moments = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    now, most = 0, 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most


def race(start, processes, **work):
    children = [start(**work) for _ in range(processes)]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * processes
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    answers = [json.loads(child.communicate(timeout=SECONDS)[0]) for child in children]
    return [tuple(span) for spans in answers for span in spans]


async def test_calls_of_one_process_keep_the_limit_and_the_order():
    limiter, order, inside = SharedRateLimiter(LABEL, Limits(concurrency=3)), [], []

    async def call(number):
        async with acquire_slot(limiter, LABEL):
            order.append(number)
            inside.append(number)
            assert len(inside) <= 3
            await asyncio.sleep(0.01)
            inside.remove(number)

    async with asyncio.timeout(20):
        await asyncio.gather(*(call(number) for number in range(10)))

    assert order == list(range(10))
    assert not await ModelSlot.objects.aexists()


async def test_a_waiting_call_hears_its_place_in_line():
    limiter, places = SharedRateLimiter(LABEL, Limits(concurrency=1, patience=10)), []
    first, second = limiter.request(LABEL), limiter.request(LABEL)
    await first.__aenter__()
    await second.__aenter__()
    async with limiter.request(LABEL) as asked, aclosing(asked.places()) as found:
        async for place in found:
            places.append((place.place, place.limit))
            await (second if len(places) == 1 else first).__aexit__(None, None, None)

    assert places == [(2, "concurrency"), (1, "concurrency")]
    assert not await ModelSlot.objects.aexists()


async def test_a_waiting_call_continues_when_requests_are_refilled():
    limiter = SharedRateLimiter(LABEL, Limits(requests=600, patience=20))
    used = {"requests_used": 605, "counted_at": timezone.now()}  # refilled in 0.6 s
    await ModelGate.objects.acreate(model=LABEL, **used)

    async with asyncio.timeout(20), limiter.request(LABEL) as slot:
        async with aclosing(slot.places()) as places:
            limits = [place.limit async for place in places]
        assert limits == ["requests"]
        assert (await database.run(queue_lengths))[LABEL].running == 1


async def test_cancelling_a_waiting_call_frees_its_place():
    limiter = SharedRateLimiter(LABEL, Limits(concurrency=1))
    async with acquire_slot(limiter, LABEL):
        waits = asyncio.create_task(acquire_slot(limiter, LABEL).__aenter__())
        async with asyncio.timeout(10):
            while not (await database.run(queue_lengths))[LABEL].waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        waits.cancel()
        await asyncio.wait([waits])
        assert await ModelSlot.objects.acount() == 1


async def test_a_call_gives_up_after_its_patience():
    limiter = SharedRateLimiter(LABEL, Limits(concurrency=1, patience=0.05))
    async with acquire_slot(limiter, LABEL):
        with pytest.raises(ModelBusy, match="all 1 slots stayed in use for 0.05 s"):
            await acquire_slot(limiter, LABEL).__aenter__()

    assert not await ModelSlot.objects.aexists()


@pytest.mark.thorough
@pytest.mark.slow
def test_two_processes_share_the_limit(start):
    spans = race(start, 2, most=2, calls=5, seconds=0.05)

    assert len(spans) == 10
    assert most_at_once(spans) <= 2


@pytest.mark.thorough
def test_four_processes_never_have_more_calls_than_the_limit(start):
    spans = race(start, 4, most=3, calls=25, seconds=0.05)

    assert len(spans) == 100
    assert most_at_once(spans) <= 3
    assert not ModelSlot.objects.exists()


@pytest.mark.thorough
def test_a_killed_process_frees_its_slot(start):
    child = start()
    assert child.stdout.readline() == "inside\n"
    assert queue_lengths()[LABEL].running == 1
    child.kill()

    async def take():
        limiter = SharedRateLimiter(LABEL, Limits(concurrency=1, patience=40))
        async with asyncio.timeout(40), acquire_slot(limiter, LABEL):
            pass

    asyncio.run(take())
    assert not ModelSlot.objects.exists()
