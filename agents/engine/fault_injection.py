"""Fault points: moments at which a test may have this process die, fail or stand still.

P1 received, not stored · P2 stored, not acknowledged · P3 a run's row, nobody's yet ·
P4 before the model is asked · P5 in its stream · P6 stream over, not stored · P7 call stored,
not begun · P8 in the tool, before its effect · P9 after it, result not stored · P10 result
stored · P11 question stored, not shown · P12 approved, not run · P13 end stored, not told ·
P15 between the passages of a document.

    ASHIATO_FAULTS=1 ASHIATO_FAULT=P9:2:kill

ends the process the second time it comes to P9. Both must be said, so that no server ever
dies by a slip.
"""

import logging
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass

POINTS = frozenset(f"P{number}" for number in range(1, 16)) - {"P14"}
FAULT_SYNTAX = "P1 to P15 but not P14, then :nth, then :kill, :raise or :sleep=SECONDS"

logger = logging.getLogger(__name__)


class InjectedFault(Exception):
    """A fault point was set to fail here."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens at a point, the nth time it is reached."""

    point: str
    nth: int = 1
    seconds: float | None = None
    raises: bool = False
    reached: int = 0

    @classmethod
    def read(cls, text: str) -> "Fault":
        point, *more = text.split(":")
        nth = int(more.pop(0)) if more and more[0].isdigit() else 1
        does, _, seconds = (more.pop(0) if more else "kill").partition("=")
        is_known = point in POINTS and does in {"kill", "raise", "sleep"} and nth > 0
        if more or not is_known or (does == "sleep") != bool(seconds):
            raise ValueError(f"ASHIATO_FAULT must be {FAULT_SYNTAX}, not {text!r}.")
        wait = float(seconds) if seconds else None
        return cls(point=point, nth=nth, seconds=wait, raises=does == "raise")

    def trigger(self) -> None:
        self.reached += 1
        if self.reached != self.nth:
            return
        if self.raises:
            raise InjectedFault(f"{self.point} was told to fail.")
        if self.seconds is None:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            time.sleep(self.seconds)  # all of it stands still, as in a machine that swaps


_armed: dict[str, Fault] = {}


def arm(environ: Mapping[str, str]) -> None:
    """Set the fault that the environment asks for, if it says twice that it means it."""
    _armed.clear()
    if environ.get("ASHIATO_FAULTS") == "1" and (text := environ.get("ASHIATO_FAULT")):
        fault = Fault.read(text)
        _armed[fault.point] = fault
        logger.warning("A fault is set at %s: this is no server for people.", text)


def point(name: str) -> None:
    """Here something may go wrong, if a test wants it to."""
    if (fault := _armed.get(name)) is not None:
        fault.trigger()
