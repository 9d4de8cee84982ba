"""Periodic work of the server processes: one clock, and the jobs that it starts.

    @periodic("learning", every=60, once=True)
    def learn() -> dict[str, Any]: ...

A function works in a thread of its own, so that no user waits for it; the thread's database
connection costs more than most work does, so `every` should be as many seconds as users can
wait. A coroutine function works on the event loop and must be short there. Neither starts again
before it has ended.

Every process does these jobs, unless they are to be done `once`: then whichever process is
first does them for all, and *Health* says when that was and how it ended.
"""

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import connections
from django.utils import timezone

from agents.models import PeriodicJob

from . import claims, database

logger = logging.getLogger(__name__)

Work = TypeVar("Work", bound=Callable[..., Any])

TICK_SECONDS = 5.0
# How long another process may have to wait until it notices that a job is due.
MAX_CLAIM_SECONDS = 60.0

jobs: dict[str, "Job"] = {}
stopping = threading.Event()


class Job:
    """A function that is due every so many seconds, the first time after `delay`."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Any],
        *,
        every: float,
        delay: float = 0.0,
        once: bool = False,
        when: Callable[[], bool] | None = None,
    ) -> None:
        self.name = name
        self.work = work
        self.every = every
        self.delay = delay
        self.once = once
        self.when = when
        self.next_at: float | None = None
        self.running: asyncio.Task[None] | threading.Thread | None = None

    def is_due(self) -> bool:
        """Whether it is time; if so, the next time is one interval later."""
        now = time.monotonic()
        if self.next_at is None:
            self.next_at = now + self.delay
        # A tick that comes a moment early must not leave the job to the next one.
        if now + TICK_SECONDS / 2 < self.next_at or self.is_running:
            return False
        self.next_at = now + (min(self.every, MAX_CLAIM_SECONDS) if self.once else self.every)
        return True

    @property
    def is_running(self) -> bool:
        if isinstance(self.running, threading.Thread):
            return self.running.is_alive()
        return self.running is not None and not self.running.done()

    async def start(self) -> None:
        """Start working, unless there is nothing to do or another process does it."""
        if self.when is not None and not await database.run(self.when):
            return
        if self.once and not await database.run(self.claim, timezone.now()):
            return
        if inspect.iscoroutinefunction(self.work):
            self.running = asyncio.create_task(self._run_task())
        else:
            thread = threading.Thread(target=self._run_in_thread, name=self.name, daemon=True)
            self.running = thread
            thread.start()

    def claim(self, now: datetime) -> bool:
        """Return whether this process is to do it for all of them."""
        row = PeriodicJob.objects.filter(name=self.name).first()
        # A tick that comes a moment early must not leave the job to the next one.
        latest = now - timedelta(seconds=self.every - TICK_SECONDS)
        if row is not None and row.started_at is not None and row.started_at > latest:
            return False  # nearly always, and without a write
        row = row or PeriodicJob.objects.get_or_create(name=self.name)[0]
        return claims.compare_and_set(row, "started_at", now)

    def run(self) -> None:
        """Work; a dictionary that the function returns is the job's result."""
        values: dict[str, Any] = {"problem": ""}
        try:
            result = self.work()
            if isinstance(result, dict):
                values["result"] = result
        except Exception as error:  # it is tried again at the next time
            logger.exception("The periodic job %r failed.", self.name)
            values["problem"] = type(error).__name__
        if self.once:
            values["ended_at"] = timezone.now()
            PeriodicJob.objects.filter(name=self.name).update(**values)

    def _run_in_thread(self) -> None:
        try:
            self.run()
        except Exception:
            logger.exception("Can't save how the periodic job %r ended.", self.name)
        finally:
            connections.close_all()

    async def _run_task(self) -> None:
        try:
            await self.work()
        except Exception:  # it is tried again at the next time
            logger.exception("The periodic job %r failed.", self.name)


def periodic(
    name: str,
    *,
    every: float,
    delay: float = 0.0,
    once: bool = False,
    when: Callable[[], bool] | None = None,
) -> Callable[[Work], Work]:
    """Do this function every so many seconds; `when` is asked first, on the database thread."""

    def register(work: Work) -> Work:
        if once and inspect.iscoroutinefunction(work):
            raise TypeError(f"{name}: only functions can be done once for all processes.")
        jobs[name] = Job(name, work, every=every, delay=delay, once=once, when=when)
        return work

    return register


def last_result(name: str) -> dict[str, Any]:
    """Return what a job that is done once returned the last time."""
    row = PeriodicJob.objects.filter(name=name).first()
    return {} if row is None else row.result


async def run_jobs() -> None:
    """Start what is due, for as long as the server runs."""
    stopping.clear()
    for job in jobs.values():
        job.next_at = None
    try:
        while True:
            for job in list(jobs.values()):
                try:
                    if job.is_due():
                        await job.start()
                except Exception:  # such as an unreachable database
                    logger.exception("Can't start the periodic job %r.", job.name)
            await asyncio.sleep(TICK_SECONDS)
    finally:
        stopping.set()
        tasks = [job.running for job in jobs.values() if isinstance(job.running, asyncio.Task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
