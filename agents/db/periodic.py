"""Periodic work of a server process: when it is due, and threads for what takes long."""

import logging
import threading
import time
from collections.abc import Callable

from django.db import connections

logger = logging.getLogger(__name__)


class Interval:
    """Due every `seconds`, the first time after `delay`."""

    def __init__(self, seconds: float, delay: float = 0.0) -> None:
        self.seconds = seconds
        self._next = time.monotonic() + delay

    def is_due(self) -> bool:
        """Whether it is time; if so, the next time is one interval later."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + self.seconds
        return True


class PeriodicThread:
    """Does its work in a thread that ends with it, so that users never wait for it.

    The thread's own database connection costs more than most work does, so an interval should
    be as long as possible without users noticing.
    """

    def __init__(
        self, name: str, work: Callable[[], object], seconds: float, delay: float = 0.0
    ) -> None:
        self.name = name
        self.work = work
        self.interval = Interval(seconds, delay)
        self._lock = threading.Lock()

    async def start_if_due(self, run: object | None) -> None:
        """Start at a periodic check, which has no run, unless the last work isn't done."""
        if run is None and self.interval.is_due() and not self._lock.locked():
            self.start()

    def start(self) -> None:
        threading.Thread(target=self._work, name=self.name, daemon=True).start()

    def _work(self) -> None:
        with self._lock:
            try:
                self.work()
            except Exception:  # the next check tries again
                logger.exception("The periodic work %r failed.", self.name)
            finally:
                connections.close_all()
