"""F04, F06, F08: several processes, PostgreSQL and Redis, and the loss of each."""

import asyncio
import random
import signal

from tests.faults.rows import row, story, unless
from tests.faults.testbed import Result, Testbed
from tests.faults.testbed_kinds import WORKERS

RECOVERS = 30


async def _busy(testbed: Testbed, people: int) -> None:
    for number, tab in enumerate(await testbed.tabs(people)):
        await tab.say(story(number))


@row("F04", "a worker is killed; the web and another worker stay", times=5, kind="scaled")
async def f04(testbed: Testbed, times: int, people: int = 10) -> Result:
    """Its runs continue in the other process at the first unrecorded step."""
    result = Result()
    for number in range(times):
        await _busy(testbed, people)
        await asyncio.sleep(random.uniform(0.3, 1.5))
        await asyncio.to_thread(testbed.product.replace, 1 + number % WORKERS)
        result.add(await testbed.played(RECOVERS))
    return result


@row("F06", "PostgreSQL restarts while runs are going on", times=5, kind="scaled")
async def f06(testbed: Testbed, times: int, people: int = 10) -> Result:
    """Away for up to five seconds: everything waits, without an error."""
    result = Result()
    database = testbed.services.database
    for number in range(times):
        await _busy(testbed, people)
        await asyncio.sleep(random.uniform(0.3, 1.2))
        sign = signal.SIGINT if number % 2 else signal.SIGQUIT
        await asyncio.to_thread(database.stop, sign)
        await asyncio.sleep(random.uniform(0, 5))
        database.start()  # by this thread, because the kernel kills it with its parent thread
        tabs = list(testbed.open_tabs)
        found = await testbed.played(RECOVERS)
        shown = " ".join(frame for tab in tabs for _, frame in tab.frames)
        red = [words for words in ("went wrong", "couldn't continue") if words in shown]
        found.violations += unless(not red, f"{red} on the page")
        result.add(found)
    return result


@row("F08", "Redis is killed in twenty streams, and forgets all", times=2, kind="scaled")
async def f08(testbed: Testbed, times: int, people: int = 20) -> Result:
    """Pages poll, and catch up from the database."""
    result = Result()
    layer = testbed.services.layer
    for _ in range(times):
        await _busy(testbed, people)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(layer.stop, signal.SIGKILL)
        await asyncio.sleep(random.uniform(0, 2))
        layer.start()
        result.add(await testbed.played(RECOVERS))
    return result
