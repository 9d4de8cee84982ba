"""How late the event loop is, and what holds it up.

The loop notes the time ten times a second. A thread looks whether it does, and where it has
not for too long reads off what the loop is doing instead.
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
from itertools import takewhile
from pathlib import PurePath
from types import FrameType

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.1
STALL_SECONDS = 0.25
MAX_FRAMES = 6
MAX_LOGGED_PLACES = 200
# The loop's own frames: under whatever it runs, and while it waits for something to do. That
# of a web process has none, and those of the reactor, which drives it, are the next.
REACTOR_PATH = "internet/asyncioreactor.py"
RUNNING_FRAMES, IDLE_FRAMES = (
    ("asyncio/events.py", REACTOR_PATH),
    ("selectors.py", REACTOR_PATH),
)
STDLIB_PATH = sysconfig.get_path("stdlib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """How often the loop was held up, for how long at most, and where it was then.

    Where is empty if it was nothing of the loop's own: other threads, or the machine.
    """

    count: int = 0
    longest: float = 0.0
    where: str = ""
    last: datetime | None = None

    def with_stall(self, seconds: float, where: str) -> "Stalls":
        noted = replace(self, count=self.count + 1, last=datetime.now(UTC))
        if seconds <= self.longest:
            return noted
        return replace(noted, longest=seconds, where=where)


class Watchdog:
    """Started and stopped on the loop that it watches."""

    def __init__(self) -> None:
        self.stalls = Stalls()
        self._loop = asyncio.get_running_loop()
        self._loops_thread = threading.get_ident()
        self._due = time.monotonic()
        self._caught = (0.0, "")
        self._places: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()
        self._tick()

    @property
    def lateness(self) -> float:
        """Seconds for which the loop owes an answer at this moment; may be asked anywhere."""
        return max(0.0, time.monotonic() - self._due)

    def stop(self) -> None:
        self._timer.cancel()
        self._over.set()
        self._thread.join()

    def _tick(self) -> None:
        if (late := self.lateness) > STALL_SECONDS:
            due, where = self._caught
            self.stalls = self.stalls.with_stall(late, where if due == self._due else "")
        self._due = time.monotonic() + TICK_SECONDS
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)

    def _watch(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            due = self._due
            if self.lateness > STALL_SECONDS and due != self._caught[0]:
                where = stack_summary(sys._current_frames().get(self._loops_thread))
                self._caught = due, where
                self._say(where)

    def _say(self, where: str) -> None:
        """Once for each place: a loop that is often held up would fill the log."""
        if where and where not in self._places and len(self._places) < MAX_LOGGED_PLACES:
            self._places.add(where)
            logger.warning("The event loop was blocked in %s.", where)


def stack_summary(frame: FrameType | None) -> str:
    """Where a thread is, innermost first; empty where its loop waits for something to do.

    Of what belongs to Python itself only the innermost is told: who called it is the matter.
    """
    codes = [each.f_code for each, _ in traceback.walk_stack(frame)]
    if not codes or codes[0].co_filename.endswith(IDLE_FRAMES):
        return ""
    called = list(takewhile(lambda code: not code.co_filename.endswith(RUNNING_FRAMES), codes))
    told = called[:1] + [code for code in called[1:] if not _is_stdlib(code.co_filename)]
    names = [f"{_short_path(code.co_filename)}:{code.co_name}" for code in told]
    return " ← ".join(names[:MAX_FRAMES])


def _is_stdlib(path: str) -> bool:
    return path.startswith((STDLIB_PATH, "<frozen")) and "site-packages" not in path


def _short_path(path: str) -> str:
    return "/".join(PurePath(path).parts[-2:])
