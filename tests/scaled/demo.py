"""Two web processes and two workers under load: one of each is killed, and nothing is lost."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.faults.tab import Tab
from tests.faults.testbed import Result
from tests.scaled.fleet import FleetTestbed

PEOPLE = 40
# Looks something up, pays an order, and streams for a few seconds.
STORY = "look:{n} pay:{n} words:120@0.05"
RECOVERS = 60


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ashiato-scale-") as folder:
        say("Starting PostgreSQL, Redis, two web processes and two workers…")
        with FleetTestbed(Path(folder), people=PEOPLE, chats=1) as testbed:
            result, kept = asyncio.run(play(testbed))
        say(report(result, kept))
    sys.exit(1 if result.violations else 0)


async def play(testbed: FleetTestbed) -> tuple[Result, dict]:
    """All users ask; meanwhile a web process and a worker are killed."""
    fleet = testbed.product
    async with testbed:
        tabs = await testbed.tabs(PEOPLE)
        say(f"{PEOPLE} people ask, each on a page of their own.")
        await asyncio.gather(*(tab.ask(STORY.format(n=n)) for n, tab in enumerate(tabs)))
        await some_words(tabs)
        say(f"kill -9 {fleet.webs[0].pid}, a web process")
        fleet.webs[0].kill()
        await asyncio.sleep(1)
        say(f"kill -9 {fleet.workers[0].pid}, a worker")
        fleet.workers[0].kill()
        result = await testbed.played(RECOVERS)
        kept = await asyncio.to_thread(fleet.dump)
    return result, kept


async def some_words(tabs: Sequence[Tab]) -> None:
    """Wait until most of them are being answered."""
    for tab in tabs[::4]:
        await tab.until(lambda tab=tab: "word3" in tab.text, 60)


def report(result: Result, kept: dict) -> str:
    runs = kept["runs"]
    completed = sum(run["status"] == "completed" for run in runs)
    lines = [
        f"{len(kept['messages'])} messages acknowledged, {len(runs)} runs, "
        f"{sum(run['takeovers'] for run in runs)} taken over, {completed} completed",
        f"{len(kept['events'])} events kept; all was settled {result.slowest:.1f} s later",
        f"Lost or doubled: {len(result.violations) or 'nothing'}",
    ]
    return "\n".join([*lines, *(f"  {what}" for what in result.violations)])


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


if __name__ == "__main__":
    main()
