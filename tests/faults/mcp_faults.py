"""F10–F12: a tool server crashes, never answers, or sends garbage."""

import asyncio

import psutil

from agents.engine.tool import timeout_message
from tests.faults.product import children
from tests.faults.rows import order, row, unless
from tests.faults.testbed import Result, Testbed, resident_mb

ENDS = 30
ANSWERED = "word2"


async def _call_and_expect(testbed: Testbed, tool: str, *words: str) -> Result:
    """Call the tool, expect its result to reach the model, and the run to complete."""
    tab = await testbed.tab()
    await tab.ask(f"plain__{tool} words:3 {order()}")
    await tab.until_over(ENDS)
    observed = " ".join(seen.text for seen in tab.runs[-1].all("seen"))
    missing = [f"{tool}: no {each!r}" for each in words if each not in observed]
    missing += unless(ANSWERED in tab.text, f"{tool}: no answer")
    result = await testbed.played(ENDS)
    result.violations += missing
    return result


async def _wait_for_restart(testbed: Testbed) -> Result:
    """Wait for its restart, which takes longer after repeated crashes."""
    result = Result()
    for _ in range(10):
        found = await _call_and_expect(testbed, 'add:{"a":40,"b":2}', "42")
        result.histories += 1
        if not found.violations:
            return result
        await asyncio.sleep(1)
    result.violations += ["it never came back", *found.violations]
    return result


@row("F10", "a tool server dies in the middle of a call", times=3, kind="served")
async def f10(testbed: Testbed, times: int) -> Result:
    """The step fails with the reason, and a new server starts a while later."""
    result = Result()
    for _ in range(times):
        result.add(await _call_and_expect(testbed, "die", "Out of cheese"))
        result.add(await _wait_for_restart(testbed))
    await asyncio.sleep(1)
    zombies = [pid for pid in children(testbed.product.web) if _is_zombie(pid)]
    result.violations += unless(not zombies, f"{len(zombies)} zombies")
    return result


@row("F11", "a tool server never answers", times=3, kind="served")
async def f11(testbed: Testbed, times: int) -> Result:
    """Once it is connected; before, the connection itself would time out."""
    result = await _wait_for_restart(testbed)
    for _ in range(times):
        result.add(await _call_and_expect(testbed, "never", timeout_message("", 2)))
    return result


@row("F12", "a tool server answers twice, with 50 MB, with garbage", times=2, kind="served")
async def f12(testbed: Testbed, times: int) -> Result:
    """It sends garbage first: it is `chatty` from the start."""
    result = await _wait_for_restart(testbed)
    before = resident_mb(testbed.product.web.pid)
    for _ in range(times):
        result.add(await _call_and_expect(testbed, "twice", "once"))
        result.add(
            await _call_and_expect(testbed, 'huge:{"size":50000000}', "bytes long; the limit")
        )
        result.add(await _wait_for_restart(testbed))
    grown = resident_mb(testbed.product.web.pid) - before
    result.violations += unless(grown < 50, f"it grew by {grown:.0f} MB")
    return result


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
