"""F01–F05, F35 and F36: the server crashes or shuts down, and restarts."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from agents.engine import fault_injection
from tests.faults.rows import order, row, story, unless
from tests.faults.tab import GONE, Tab
from tests.faults.testbed import Result, Testbed

POINTS = [point for point in fault_injection.POINTS if point != "before_document_index"]
RECOVERS = 30
# Late enough that other runs are anywhere when one gets there.
NTH = {
    "before_message_save": 2,
    "after_message_save": 2,
    "before_run_start": 3,
    "before_model_call": 4,
    "during_model_stream": 20,
    "after_model_call": 3,
    "before_tool_call": 2,
    "during_tool_call": 2,
    "after_run_finish_save": 2,
}
LATE, LATE_IN_A_PLAN = max(NTH.values()), 2
PLANNED = "look:{0} sign:{0} pay:{0} wait:0.3 words:5"
WALK = "wait:3 look:a wait:3.1 look:b wait:3.2 look:c wait:3.3 look:d wait:3.4 words:90@0.1"
CUT_OFF = {"running", "waiting", "cut"}
UNKNOWN = ("Did pay finish?", "may already have completed", "Run again", "Mark as done")


@row("F01", "killed at each fault point", times=8)
async def f01(testbed: Testbed, times: int, points: Sequence[str] = POINTS) -> Result:
    """Kill at each point, with this many users."""
    result = Result()
    for point in points:
        found = await _killed_at(testbed, point, times)
        found.violations = [f"{point} {what}" for what in found.violations]
        result.add(found)
    return result


@row("F35", "killed at each fault point while plans are carried out", times=4)
async def f35(testbed: Testbed, times: int, points: Sequence[str] = POINTS) -> Result:
    result = Result()
    for point in points:
        found = await _killed_at(testbed, point, times, agent="planner")
        found.violations = [f"{point} by plan {what}" for what in found.violations]
        result.add(found)
    return result


async def _killed_at(testbed: Testbed, point: str, people: int, agent: str = "") -> Result:
    await asyncio.to_thread(testbed.product.kill)
    nth = min(NTH.get(point, 1), LATE_IN_A_PLAN if agent else LATE) if people > 3 else 1
    await testbed.restart(f"{point}:{nth}")
    tabs = await testbed.tabs(people)
    for number, tab in enumerate(tabs):
        question = story(number if people > 3 else number + 1)
        await tab.say(PLANNED.format(order()) if agent else question, agent)
    # A plan waits for its approval, and most points come after it.
    is_dead = await _dies(testbed, tabs, decides=point == "before_resume" or bool(agent))
    await testbed.restart()
    result = await testbed.played(RECOVERS)
    result.violations += unless(is_dead, "it was never reached")
    return result


async def _dies(testbed: Testbed, tabs: Sequence[Tab], *, decides: bool) -> bool:
    """Return whether it crashes; users decide meanwhile, which may cause it."""
    dying = asyncio.create_task(asyncio.to_thread(testbed.product.died, 15))
    while not dying.done():
        for tab in tabs if decides else ():
            for question in tab.questions:
                with suppress(*GONE):
                    await tab.decide(question, is_approved=True)
        await asyncio.sleep(0.05)
    await asyncio.to_thread(testbed.product.kill)
    return await dying


@row("F02", "killed at any time, twenty runs at once", times=10)
async def f02(testbed: Testbed, times: int, people: int = 20) -> Result:
    result = Result()
    for _ in range(times):
        tabs = await testbed.tabs(people)
        for number, tab in enumerate(tabs):
            await tab.say(story(number))
        await asyncio.sleep(random.uniform(0, 2.5))
        await asyncio.to_thread(testbed.product.kill)
        await testbed.restart()
        result.add(await testbed.played(RECOVERS))
    return result


@row("F03", "told to go (a deploy) during twenty runs", times=2)
async def f03(testbed: Testbed, times: int) -> Result:
    """Some runs end within the grace period, the others continue in the next process."""
    result = Result()
    for _ in range(times):
        tabs = await testbed.tabs(20)
        for number, tab in enumerate(tabs):
            await tab.say(f"words:{150 if number % 4 == 0 else 20}@0.05")
        await asyncio.sleep(1)
        took = await asyncio.to_thread(testbed.product.stop)
        code = testbed.product.web.returncode
        await testbed.restart()
        found = await testbed.played(60)
        found.violations += unless(took < 30 and code == 0, f"gone after {took} s with {code}")
        result.add(found)
    return result


@row("F05", "killed between the effect of a tool and its result", times=4)
async def f05(testbed: Testbed, times: int) -> Result:
    """An uncertain call isn't repeated: a user says what happened, or stops."""
    result = Result()
    for number in range(times):
        await asyncio.to_thread(testbed.product.kill)
        await testbed.restart("after_tool_call")
        tab, paid = await testbed.tab(), order()
        await tab.say(f"pay:{paid} words:5")
        await _dies(testbed, [], decides=False)
        await testbed.restart()
        await tab.until(lambda tab=tab: tab.questions)
        shown = tab.questions[0].text
        before = testbed.product.effects.count(f"pay {paid}")
        if number % 2:
            await tab.stop()
        found = await testbed.played(RECOVERS)
        found.violations += [f"no {words!r}" for words in UNKNOWN if words not in shown]
        found.violations += unless(before == 1, f"done {before} times before it was asked")
        result.add(found)
    return result


@row("F36", "six kills and a deploy in one run that gets on between them", times=1)
async def f36(testbed: Testbed, times: int, kills: int = 6) -> Result:
    """Only crashes without a new step count against a run, and a deploy never does."""
    result = Result()
    folder = testbed.folder / "many"
    with Testbed(folder, chats=times, ASHIATO_GRACE="0.2") as many:
        async with many:
            for _ in range(times):
                result.add(await _kill_in_turn(many, kills))
    return result


async def _kill_in_turn(testbed: Testbed, kills: int) -> Result:
    tab = await testbed.tab()
    await tab.ask(WALK)
    recorded = 0
    for number in range(kills):
        recorded = await _further(testbed, tab, recorded)
        if number == kills // 2:
            await asyncio.to_thread(testbed.product.stop)
            await testbed.restart()
        await asyncio.to_thread(testbed.product.kill)
        await testbed.restart()
    result = await testbed.played(RECOVERS)
    kept = await asyncio.to_thread(testbed.product.dump, [tab.chat])
    [run] = kept["runs"]
    result.violations += unless(run["status"] == "completed", f"it ended {run['status']}")
    result.violations += unless(run["takeovers"] >= kills, f"{run['takeovers']} takeovers")
    return result


async def _further(testbed: Testbed, tab: Tab, recorded: int) -> int:
    """Wait until more of its steps have ended than before."""
    async with asyncio.timeout(RECOVERS):
        while True:
            kept = await asyncio.to_thread(testbed.product.dump, [tab.chat])
            ended = sum(step["status"] not in CUT_OFF for step in kept["steps"])
            if ended > recorded:
                return ended
            await asyncio.sleep(0.1)
