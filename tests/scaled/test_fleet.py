"""Real processes, of which some die."""

import asyncio
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.rows import order
from tests.scaled.demo import STORY, some_words
from tests.scaled.fleet import FleetGround

RECOVERS = 60
# One worker plays them all: processes are started once.
pytestmark = pytest.mark.xdist_group("fleet")


@pytest.fixture(scope="module")
def ground():
    with (
        TemporaryDirectory(prefix="ashiato-fleet-") as folder,
        FleetGround(Path(folder), people=8, chats=4) as ground,
    ):
        yield ground


async def asking(ground, people):
    tabs = await ground.tabs(people)
    await asyncio.gather(*(tab.ask(STORY.format(n=order())) for tab in tabs))
    await some_words(tabs)


async def test_f04_killing_a_web_process_and_a_worker_loses_nothing(ground):
    fleet = ground.product
    async with ground:
        await asking(ground, 6)
        fleet.webs[0].kill()
        fleet.workers[0].kill()
        result = await ground.played(RECOVERS)

    kept = fleet.dump()
    assert result.violations == []
    assert {run["status"] for run in kept["runs"]} == {"completed"}
    assert sum(run["takeovers"] for run in kept["runs"]) > 0


async def test_a_worker_that_is_asked_to_go_hands_its_runs_over(ground):
    fleet = ground.product
    fleet.restart()
    async with ground:
        await asking(ground, 4)
        fleet.workers[0].send_signal(signal.SIGTERM)
        result = await ground.played(RECOVERS)

    assert result.violations == []
    assert fleet.workers[0].wait(20) == 0


async def test_stop_reaches_the_worker_that_drives_the_run(ground):
    ground.product.restart()
    async with ground:
        tab = await ground.tab()
        await tab.ask("words:500@0.05")
        await tab.until(lambda: "word3" in tab.text, 30)
        await tab.stop()
        await tab.until_over(10)
        result = await ground.played(RECOVERS)

    assert result.violations == []
    assert "You stopped this run" in tab.text
