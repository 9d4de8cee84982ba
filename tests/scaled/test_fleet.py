"""Real processes, some of which are killed."""

import asyncio
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.rows import order
from tests.faults.tab import Tab
from tests.processes import SharedFixture
from tests.scaled.demo import STORY, some_words
from tests.scaled.fleet import Fleet, FleetTestbed, scaled_mode, start_services
from tests.services import PostgreSQL, Redis

# Three or more processes under load: test_workers.py has the short tests of the same code.
pytestmark = [pytest.mark.both_databases, pytest.mark.thorough]

RECOVERS = 60


@pytest.fixture(scope="module")
def testbed():
    with (
        TemporaryDirectory(prefix="ashiato-fleet-") as folder,
        FleetTestbed(Path(folder), people=8, chats=4) as testbed,
    ):
        yield testbed


@pytest.fixture(autouse=True)
def kept_processes():
    """The testbed keeps its processes for the tests that follow."""
    with SharedFixture():
        yield


async def open_asking_tabs(testbed, people):
    tabs = await testbed.tabs(people)
    await asyncio.gather(*(tab.ask(STORY.format(n=order())) for tab in tabs))
    await some_words(tabs)


async def test_f04_killing_a_web_process_and_a_worker_loses_nothing(testbed):
    fleet = testbed.product
    async with testbed:
        await open_asking_tabs(testbed, 6)
        fleet.webs[0].kill()
        fleet.workers[0].kill()
        result = await testbed.played(RECOVERS)

    kept = fleet.dump()
    assert result.violations == []
    assert {run["status"] for run in kept["runs"]} == {"completed"}
    assert sum(run["takeovers"] for run in kept["runs"]) > 0


async def test_a_stopping_worker_hands_its_runs_over(testbed):
    fleet = testbed.product
    fleet.restart()
    async with testbed:
        await open_asking_tabs(testbed, 4)
        fleet.workers[0].send_signal(signal.SIGTERM)
        result = await testbed.played(RECOVERS)

    assert result.violations == []
    assert fleet.workers[0].wait(20) == 0


async def test_stop_reaches_the_worker_that_drives_the_run(testbed):
    testbed.product.restart()
    async with testbed:
        tab = await testbed.tab()
        await tab.ask("words:500@0.05")
        await tab.until(lambda: "word3" in tab.text, 30)
        await tab.stop()
        await tab.until_over(10)
        result = await testbed.played(RECOVERS)

    assert result.violations == []
    assert tab.runs[-1].attributes["data-status"] == "stopped"


SHARE = """
from chat.models import ChatSession
from chat.sharing import members
guest = ChatSession.objects.get(pk={theirs}).user
members.add_member(ChatSession.objects.get(pk={chat}), guest.username, "write")
"""


async def test_presence_works_across_two_web_processes(testbed):
    testbed.product.restart()
    one, other = sorted(testbed.people, key=lambda person: len(person["chats"]))[-2:]
    chat, theirs = one["chats"].pop(), other["chats"][0]
    testbed.product.run("manage.py", "shell", "-c", SHARE.format(chat=chat, theirs=theirs))
    async with testbed:
        near, far = testbed.product.urls
        owner = await Tab(testbed.client, near, one, chat).open()
        guest = await Tab(testbed.client, far, other, chat).open()
        testbed.open_tabs += [owner, guest]
        await owner.until(lambda: owner.page.find("present").nodes)
        await guest.ask("words:5")
        await owner.until(lambda: "word4" in owner.text, 30)
        assert owner.messages.all("author")

        await guest.close()

        await owner.until(lambda: not owner.page.find("present").nodes, 10)


@pytest.fixture
def services():
    with (
        TemporaryDirectory(prefix="ashiato-fleet-") as folder,
        start_services(
            PostgreSQL(Path(folder, "postgresql")), Redis(Path(folder, "redis"))
        ) as both,
    ):
        yield Path(folder), *both


@pytest.mark.thorough
def test_a_worker_without_its_database_can_be_stopped(services):
    folder, database, layer = services
    fleet = Fleet(folder, "http://127.0.0.1:9/v1", scaled_mode(database, layer, workers=1))
    fleet.run("manage.py", "setup")
    worker = fleet._begun("worker", {})
    try:
        fleet.wait_for_workers(1)
        database.stop()
        worker.send_signal(signal.SIGTERM)

        assert worker.wait(60) == 0
    finally:
        worker.kill()
