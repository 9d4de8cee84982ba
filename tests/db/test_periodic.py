"""Periodic jobs: when they are due, and that users never wait for them."""

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from agents.console.system.health_checks.jobs import check_periodic_jobs
from agents.db import periodic
from agents.db.periodic import Job
from agents.models import PeriodicJob


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1_000.0

    monkeypatch.setattr(time, "monotonic", lambda: Clock.now)
    return Clock


def test_a_job_is_due_at_once_and_then_once_in_its_time(clock):
    job = Job("sweeping", print, every=10)

    due = []
    for clock.now in (1_000, 1_005, 1_010, 1_015, 1_025):
        due.append(job.is_due())

    assert due == [True, False, True, False, True]


def test_a_delay_postpones_the_first_time(clock):
    job = Job("sweeping", print, every=60, delay=30)

    assert not job.is_due()
    clock.now += 30
    assert job.is_due()


async def test_a_function_works_in_a_thread_of_its_own():
    threads = []
    job = Job("sweeping", lambda: threads.append(threading.current_thread().name), every=60)

    await job.start()
    job.running.join(5)

    assert threads == ["sweeping"]


async def test_a_slow_job_is_never_done_twice_at_once():
    may_end = threading.Event()
    job = Job("slow", lambda: may_end.wait(5), every=0)
    await job.start()

    assert not job.is_due()

    may_end.set()
    job.running.join(5)
    assert job.is_due()


async def test_a_failed_job_is_logged_and_tried_again(caplog):
    def fail():
        raise ValueError("no luck")

    job = Job("unlucky", fail, every=0)
    await job.start()
    job.running.join(5)

    assert "The periodic job 'unlucky' failed." in caplog.text
    assert job.is_due()


async def test_the_clock_starts_jobs_and_ends_their_tasks(monkeypatch):
    events = []

    async def work():
        events.append("started")
        try:
            await asyncio.sleep(60)
        finally:
            events.append("ended")

    monkeypatch.setattr(periodic, "jobs", {"waiting": Job("waiting", work, every=60)})
    clock = asyncio.create_task(periodic.run_jobs())
    async with asyncio.timeout(5):
        while not events:  # noqa: ASYNC110
            await asyncio.sleep(0)
    clock.cancel()
    await asyncio.gather(clock, return_exceptions=True)

    assert events == ["started", "ended"]


@pytest.mark.both_databases
@pytest.mark.django_db
def test_one_process_does_a_job_for_all():
    first, second = (Job("cleaning", print, every=3_600, once=True) for _ in range(2))
    now = timezone.now()

    assert first.claim(now)
    assert not second.claim(now + timedelta(minutes=59))
    assert second.claim(now + timedelta(minutes=60, seconds=-2))


@pytest.mark.django_db
def test_the_result_of_a_job_is_saved_until_there_is_another():
    results = iter([{"saved": 2}, None])
    job = Job("learning", lambda: next(results), every=60, once=True)
    job.claim(timezone.now())

    job.run()
    job.run()

    assert periodic.last_result("learning") == {"saved": 2}
    assert PeriodicJob.objects.get(name="learning").ended_at


@pytest.mark.django_db
def test_health_names_jobs_that_failed_or_are_late(monkeypatch):
    job = Job("learning", lambda: 1 / 0, every=60, once=True)
    monkeypatch.setattr(periodic, "jobs", {"learning": job})
    job.claim(timezone.now())
    job.run()

    assert "learning" in check_periodic_jobs().advice

    long_ago = timezone.now() - timedelta(hours=2)
    PeriodicJob.objects.update(started_at=long_ago, problem="")
    assert "learning" in check_periodic_jobs().advice
