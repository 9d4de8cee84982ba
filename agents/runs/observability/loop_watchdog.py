"""Measures how late the event loop is, and what blocks it.

The loop notes the time ten times a second. A thread checks that, and if it is overdue, records
what the loop is doing.
"""

import asyncio
import logging
import sys
import sysconfig
import threading
import time
import traceback
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from types import FrameType

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.1
STALL_SECONDS = 0.25
MAX_FRAMES = 6
MAX_LOGGED_LOCATIONS = 200
# The loop's own frames: below anything it runs, and while it is idle. In a web process, the
# frames of its reactor take their place.
REACTOR_PATH = "internet/asyncioreactor.py"
RUNNING_FRAMES = ("asyncio/events.py", REACTOR_PATH)
IDLE_FRAMES = ("selectors.py", REACTOR_PATH)
STDLIB_PATH = sysconfig.get_path("stdlib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """How often the loop was blocked, for how long at most, and where.

    The location is empty if it wasn't the loop's own code: other threads, or the machine.
    """

    count: int = 0
    longest: float = 0.0
    location: str = ""
    last: datetime | None = None

    def with_stall(self, seconds: float, location: str) -> "Stalls":
        counted = replace(self, count=self.count + 1, last=datetime.now(UTC))
        if seconds <= self.longest:
            return counted
        return replace(counted, longest=seconds, location=location)


class Watchdog:
    """Started and stopped on the loop it watches."""

    def __init__(self) -> None:
        self.stalls = Stalls()
        self._loop = asyncio.get_running_loop()
        self._loops_thread = threading.get_ident()
        self._due = time.monotonic()
        self._caught = (0.0, "")
        self._logged: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()
        self._tick()

    @property
    def lateness(self) -> float:
        """Return how many seconds the loop is overdue; thread-safe."""
        return max(0.0, time.monotonic() - self._due)

    def stop(self) -> None:
        self._timer.cancel()
        self._stopped.set()
        self._thread.join()

    def _tick(self) -> None:
        if (late := self.lateness) > STALL_SECONDS:
            due, location = self._caught
            self.stalls = self.stalls.with_stall(late, location if due == self._due else "")
        self._due = time.monotonic() + TICK_SECONDS
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)

    def _watch(self) -> None:
        while not self._stopped.wait(TICK_SECONDS):
            due = self._due
            if self.lateness <= STALL_SECONDS or due == self._caught[0]:
                continue
            location = stack_summary(sys._current_frames().get(self._loops_thread))
            self._caught = due, location
            # Each location is logged once, because frequent stalls would fill the log.
            is_new = location and location not in self._logged
            if is_new and len(self._logged) < MAX_LOGGED_LOCATIONS:
                self._logged.add(location)
                logger.warning("The event loop was blocked in %s.", location)


def stack_summary(frame: FrameType | None) -> str:
    """Return a thread's stack, innermost first; empty if its loop is idle.

    Of the standard library only the innermost frame is included: its caller matters.
    """
    codes = [stack_frame.f_code for stack_frame, _ in traceback.walk_stack(frame)]
    if not codes or codes[0].co_filename.endswith(IDLE_FRAMES):
        return ""
    names: list[str] = []
    for code in codes:
        path = code.co_filename
        if path.endswith(RUNNING_FRAMES):
            break
        is_stdlib = path.startswith((STDLIB_PATH, "<frozen")) and "site-packages" not in path
        if not names or not is_stdlib:
            short_path = "/".join(PurePath(path).parts[-2:])
            names.append(f"{short_path}:{code.co_name}")
    return " ← ".join(names[:MAX_FRAMES])
