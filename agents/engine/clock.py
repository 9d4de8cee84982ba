"""A run's clock: read from the wall clock once, then advanced by the monotonic clock.

Intervals between a run's events stay correct even if the system clock is changed meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from time import monotonic


class Clock:
    def __init__(self) -> None:
        self._wall = datetime.now(UTC)
        self._steady = monotonic()

    def now(self) -> datetime:
        return self.at(monotonic())

    def at(self, steady: float) -> datetime:
        """Return the wall-clock time of a monotonic reading."""
        return self._wall + timedelta(seconds=steady - self._steady)

    def advance_to(self, time: datetime) -> None:
        """Never go back behind a time that was already recorded, possibly by another clock."""
        self._wall += max(timedelta(), time - self.now())


_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


def current() -> Clock:
    """Return the clock of the current run, or a new one."""
    return _clock.get() or Clock()


@contextmanager
def use_clock(clock: Clock) -> Iterator[None]:
    """Use this clock for everything in the block."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)
