"""F29, F31: the clock jumps, and the machine runs out of resources."""

import asyncio
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

from tests.faults.rows import order, row, story, unless
from tests.faults.testbed import NotAvailable, Result, Testbed

ENDS = 30
HOUR = 3600
LEAST = 0.2  # minimum seconds of each story
FILES = 256
CLOCK = Path(__file__).with_name("clock.c")


@row("F29", "the clock jumps by an hour, to and fro", times=2)
async def f29(testbed: Testbed, times: int) -> Result:
    """Order and waits don't depend on the wall clock, so nothing is early, late or reversed.

    Durations of runs and steps are measured by the monotonic clock too.
    """
    result = Result()
    folder = testbed.folder / "clock"
    folder.mkdir()
    jump = folder / "seconds"
    environment = {"LD_PRELOAD": str(_build_library(folder)), "FAULTS_CLOCK": str(jump)}
    with Testbed(folder, chats=20, **environment) as ticking:
        async with ticking:
            for seconds in (HOUR, -HOUR) * times:
                result.add(await _jump_clock(ticking, jump, seconds))
    return result


async def _jump_clock(testbed: Testbed, jump: Path, seconds: int) -> Result:
    _set(jump, 0)
    tabs = await testbed.tabs(4)
    for number, tab in enumerate(tabs):
        await tab.ask(story(number))
    await asyncio.sleep(0.4)
    _set(jump, seconds)
    result = await testbed.played(ENDS)
    shown = " ".join(tab.text for tab in tabs)
    early = [words for words in ("in time", "sent nothing", "restart") if words in shown]
    result.violations += unless(not early, f"{early} on the page")
    kept = await asyncio.to_thread(testbed.product.dump, [tab.chat for tab in tabs])
    result.violations += _odd_durations(kept, seconds)
    return result


def _odd_durations(kept: dict, jump: int) -> list[str]:
    """Return runs and steps that took impossibly long, or no time at all."""
    took = {f"run {run['pk']}": run["seconds"] for run in kept["runs"]}
    for step in kept["steps"]:
        began, ended = (datetime.fromisoformat(step[at]) for at in ("started_at", "ended_at"))
        took[f"step {step['run_id']}.{step['number']}"] = (ended - began).total_seconds()
    runs = [name for name in took if name.startswith("run") and took[name] < LEAST]
    odd = [name for name, seconds in took.items() if not 0 <= seconds < ENDS] + runs
    return [f"{name} took {took[name]:.1f} s at a jump of {jump} s" for name in odd]


def _set(jump: Path, seconds: int) -> None:
    jump.write_text(str(seconds))


def _build_library(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        raise NotAvailable("a clock that jumps needs a C compiler")
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, CLOCK, "-ldl"], check=True)
    return library


@row("F31", "no more than 256 open files, and more pages than that", times=1)
async def f31(testbed: Testbed, times: int) -> Result:
    """Excess clients are rejected; connected ones continue, and everything recovers."""
    result = Result()
    for _ in range(times):
        await asyncio.to_thread(testbed.product.kill)
        await testbed.restart(files=FILES)
        tabs = await testbed.tabs(6)
        for tab in tabs:
            await tab.ask(f"look:{order()} words:60@0.05")
        crowd = await asyncio.gather(*(_knock(testbed) for _ in range(FILES + 50)))
        for writer in filter(None, crowd):
            writer.close()
        is_up = testbed.product.web.poll() is None
        result.add(await testbed.played(ENDS))
        result.violations += unless(is_up, "the server ended")
        await asyncio.to_thread(testbed.product.kill)
        await testbed.restart()
    return result


async def _knock(testbed: Testbed) -> asyncio.StreamWriter | None:
    try:
        _, writer = await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", testbed.product.port), 3
        )
    except (OSError, TimeoutError):
        return None
    return writer
