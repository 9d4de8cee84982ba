"""The rows of the table: what is tried, and what came of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["works", "says why not", "fails", "not tried"]
Check = Callable[[], Awaitable[str]]

CHECK_SECONDS = 1800


class NotTried(Exception):
    """Something that this machine lacks is needed; the message says what."""


class SaysWhyNot(Exception):
    """It can't work, and the product says so in the sentence given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    area: str
    name: str
    version: str
    check: Check
    real: str  # what was the real thing
    played: str = ""  # what was played back or simulated
    is_short: bool = False  # part of `make test`
    notes: str = ""  # on the page of a conformance suite: what of it isn't run, and why


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    row: Row
    outcome: Outcome
    detail: str
    seconds: float = 0.0
    day: str = ""  # on which it was tried


ROWS: list[Row] = []


def row(
    area: str,
    name: str,
    version: str = "",
    *,
    real: str,
    played: str = "",
    is_short: bool = False,
    notes: str = "",
) -> Callable[[Check], Check]:
    """Add a check to the table; it returns in a few words what was seen."""

    def add(check: Check) -> Check:
        facts = {"version": version, "real": real, "played": played, "notes": notes}
        ROWS.append(Row(area=area, name=name, check=check, is_short=is_short, **facts))
        return check

    return add
