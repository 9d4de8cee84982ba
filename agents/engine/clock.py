"""The time of a run: set by the wall clock once, and moved by a steady one from then on.

What happened between two events of a run is then never longer or shorter than it was, even
where somebody, or a time server, has set the clock meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from time import monotonic


class Clock:
    def __init__(self) -> None:
        self._wall, self._steady = datetime.now(UTC), monotonic()

    def now(self) -> datetime:
        return self.at(monotonic())

    def at(self, steady: float) -> datetime:
        """The time when the steady clock showed this."""
        return self._wall + timedelta(seconds=steady - self._steady)

    def advance_to(self, time: datetime) -> None:
        """Never show less than what was written down already, maybe by another clock."""
        self._wall += max(timedelta(), time - self.now())


_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


def current() -> Clock:
    """The clock of the run that goes on here; else one that is set now."""
    return _clock.get() or Clock()


@contextmanager
def use_clock(clock: Clock) -> Iterator[None]:
    """Everything that happens in here happens by this clock."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)
