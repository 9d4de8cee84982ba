"""Fault points: places where a test can kill, fail or stall this process.

P1 received, not saved · P2 saved, not acknowledged · P3 run saved, not owned yet ·
P4 before the model request · P5 in the stream · P6 stream ended, not saved · P7 call saved,
not started · P8 in the tool, before its effect · P9 after it, result not saved · P10 result
saved · P11 approval request saved, not displayed · P12 approved, not run · P13 end saved,
not published · P15 between the passages of a document.

    ASHIATO_FAULTS=1 ASHIATO_FAULT=P9:2:kill

kills the process the second time it reaches P9. Both variables are required, so that no
server is killed by accident.
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
    """Raised at a fault point that is set to fail."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens the nth time a point is reached."""

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
            time.sleep(self.seconds)  # blocks the whole process, like a machine that swaps


_armed: dict[str, Fault] = {}


def arm(environ: Mapping[str, str]) -> None:
    """Set the fault named in the environment if both variables are set."""
    _armed.clear()
    if environ.get("ASHIATO_FAULTS") == "1" and (text := environ.get("ASHIATO_FAULT")):
        fault = Fault.read(text)
        _armed[fault.point] = fault
        logger.warning("A fault is set at %s: this is no server for people.", text)


def point(name: str) -> None:
    """Mark a point at which a test can inject a fault."""
    if (fault := _armed.get(name)) is not None:
        fault.trigger()
