"""Periodic work: when it is due, and that users never wait for it."""

import threading
import time

from agents.db.periodic import Interval, PeriodicThread


class Clock:
    def __init__(self, monkeypatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def test_an_interval_is_due_at_once_and_then_once_in_its_time(monkeypatch):
    clock = Clock(monkeypatch)
    checks = Interval(10)

    found = []
    for clock.now in (1_000, 1_009, 1_010, 1_011, 1_025):
        found.append(checks.is_due())

    assert found == [True, False, True, False, True]


def test_a_delay_postpones_the_first_time(monkeypatch):
    clock = Clock(monkeypatch)
    checks = Interval(10, delay=5)

    assert not checks.is_due()
    clock.now += 5
    assert checks.is_due()


async def test_the_work_has_a_thread_of_its_own_at_checks_only():
    threads, done = [], threading.Event()

    def work():
        threads.append(threading.current_thread().name)
        done.set()

    work_thread = PeriodicThread("sweeping", work, 60)
    await work_thread.start_if_due(run=object())
    assert threads == []

    await work_thread.start_if_due(None)
    assert done.wait(5)
    assert threads == ["sweeping"]


async def test_slow_work_is_never_done_twice_at_once():
    started, may_end = threading.Semaphore(0), threading.Event()

    def work():
        started.release()
        may_end.wait(5)

    work_thread = PeriodicThread("slow", work, 0)
    await work_thread.start_if_due(None)
    assert started.acquire(timeout=5)

    await work_thread.start_if_due(None)
    assert not started.acquire(timeout=0.05)
    may_end.set()


async def test_failed_work_is_logged_and_tried_again(caplog):
    calls = threading.Semaphore(0)

    def work():
        calls.release()
        raise ValueError("no luck")

    work_thread = PeriodicThread("unlucky", work, 0)
    for _attempt in range(2):
        await work_thread.start_if_due(None)
        assert calls.acquire(timeout=5)
        with work_thread._lock:  # it has ended
            pass

    assert "The periodic work 'unlucky' failed." in caplog.text
