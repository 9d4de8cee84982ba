"""The clocks of the runs in this process."""

from collections import OrderedDict
from datetime import datetime

from agents.engine.clock import Clock

MAX_CLOCKS = 1_000

_clocks: OrderedDict[int, Clock] = OrderedDict()


def get_clock(run: int) -> Clock:
    """Return this run's clock, creating it if needed."""
    clock = _clocks.setdefault(run, Clock())
    while len(_clocks) > MAX_CLOCKS:
        _clocks.popitem(last=False)
    return clock


def now(run: int) -> datetime:
    """Return the current time of a run."""
    clock = _clocks.get(run)
    return (clock or Clock()).now()
