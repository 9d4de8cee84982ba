"""The clocks of the runs that this process has to do with, for whoever tells of them."""

from collections import OrderedDict
from datetime import datetime

from agents.engine.clock import Clock

MAX_CLOCKS = 10_000

_clocks: OrderedDict[int, Clock] = OrderedDict()


def get_clock(run: int) -> Clock:
    """The clock of this run, from now on at the latest."""
    clock = _clocks.setdefault(run, Clock())
    while len(_clocks) > MAX_CLOCKS:
        _clocks.popitem(last=False)
    return clock


def now(run: int) -> datetime:
    """What time it is for a run that goes on."""
    known = _clocks.get(run)
    return (known or Clock()).now()
