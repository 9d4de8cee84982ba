"""The table of faults: each row can be played on a ground any number of times."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count

from tests.faults.testbed import Result

Play = Callable[..., Awaitable[Result]]

_orders = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fault; `times` is how often `make faults` plays it, `kind` its kind of ground."""

    id: str
    fault: str
    play: Play
    times: int
    kind: str = "plain"


ROWS: dict[str, Row] = {}


def row(id: str, fault: str, *, times: int, kind: str = "plain") -> Callable[[Play], Play]:
    def add(play: Play) -> Play:
        ROWS[id] = Row(id=id, fault=fault, play=play, times=times, kind=kind)
        return play

    return add


def order() -> str:
    """Return a number that no other history uses."""
    return f"no{next(_orders):05d}x"


def story(number: int) -> str:
    """Return a question for the nth user: different kinds of runs."""
    stories = (
        "look:{0} words:25@0.02",
        "pay:{0} words:10@0.02",
        "sign:{0} words:8@0.02",
        "words:40@0.02",
        "wait:0.3 look:{0} pay:{0} words:5",
    )
    return stories[number % len(stories)].format(order())


def unless(holds: object, otherwise: str) -> list[str]:
    return [] if holds else [otherwise]
