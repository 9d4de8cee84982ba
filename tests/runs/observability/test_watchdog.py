"""The event loop watchdog: how late it is, and what blocks it."""

import asyncio
import logging
import re
import sys
import threading
import time

import pytest
import uvloop
from twisted.internet.asyncioreactor import AsyncioSelectorReactor

from agents.runs.observability import loop_watchdog
from agents.runs.observability.loop_watchdog import Stalls, Watchdog


@pytest.fixture
async def dog():
    dog = Watchdog()
    await asyncio.sleep(0)
    yield dog
    dog.stop()


def hold_up(seconds=0.5):
    time.sleep(seconds)


async def test_a_blocked_loop_is_reported_with_its_location(dog, caplog):
    hold_up()
    await asyncio.sleep(0.05)

    assert dog.stalls.count == 1
    assert 0.3 < dog.stalls.longest < 5
    assert dog.stalls.last is not None
    assert dog.stalls.location.startswith("observability/test_watchdog.py:hold_up")
    assert "pluggy" not in dog.stalls.location
    assert "blocked in observability/test_watchdog.py:hold_up" in caplog.text


async def test_the_caller_of_library_code_is_reported(dog):
    max([0.5], key=lambda _: re.sub("a", lambda _: hold_up() or "", "a"))
    await asyncio.sleep(0.05)

    assert "re/__init__.py" not in dog.stalls.location
    assert dog.stalls.location.count("test_watchdog.py") > 2


async def test_the_same_location_is_logged_once(dog, caplog):
    for _ in range(2):
        hold_up()
        await asyncio.sleep(0.15)

    assert dog.stalls.count == 2
    logged = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(logged) == 1


async def test_a_loop_that_works_in_small_pieces_is_never_late(dog):
    for _ in range(20):
        hold_up(0.01)
        await asyncio.sleep(0)

    assert dog.stalls == Stalls()


async def test_the_lag_is_available_while_the_loop_is_blocked(dog):
    asked: list[float] = []
    other = threading.Timer(0.4, lambda: asked.append(dog.lateness))
    other.start()
    hold_up(0.6)
    other.join()

    assert asked[0] > 0.1


async def test_only_the_longest_stall_keeps_its_location():
    stalls = Stalls().with_stall(2.0, "a").with_stall(1.0, "b")

    assert (stalls.count, stalls.longest, stalls.location) == (2, 2.0, "a")


def test_an_idle_loop_has_no_location():
    async def wait():
        await asyncio.sleep(0.3)

    idle = threading.Thread(target=asyncio.run, args=[wait()])
    idle.start()
    time.sleep(0.1)
    where = loop_watchdog.stack_summary(sys._current_frames().get(idle.ident))
    idle.join()

    assert where == ""


@pytest.fixture
def reactor():
    """A web process's reactor, in its own thread."""
    loop = uvloop.new_event_loop()
    reactor = AsyncioSelectorReactor(loop)
    reactor.thread = threading.Thread(target=reactor.run, args=[False])
    reactor.thread.start()
    time.sleep(0.1)
    yield reactor
    reactor.callFromThread(reactor.stop)
    reactor.thread.join()
    reactor.removeAll()
    loop.close()


def test_the_loop_of_a_web_process_is_watched(reactor):
    idle = loop_watchdog.stack_summary(sys._current_frames().get(reactor.thread.ident))
    reactor.callFromThread(hold_up)
    time.sleep(0.2)
    busy = loop_watchdog.stack_summary(sys._current_frames().get(reactor.thread.ident))

    assert idle == ""
    assert busy.startswith("observability/test_watchdog.py:hold_up")
    assert "asyncioreactor" not in busy
