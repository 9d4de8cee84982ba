"""Fault points: where a test can kill this process, make it fail or make it hang.

    ASHIATO_FAULTS=1 ASHIATO_FAULT=after_tool_call:2:kill

kills the process when it reaches `after_tool_call` for the second time. Both variables
are needed, so that a single slip never kills a server.
"""

import logging
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass

POINTS = (
    "before_message_save",
    "after_message_save",
    "before_run_start",
    "before_model_call",
    "during_model_stream",
    "after_model_call",
    "before_tool_call",
    "during_tool_call",
    "after_tool_call",
    "after_tool_response_save",
    "after_approval_request_save",
    "before_resume",
    "after_run_finish_save",
    "before_document_index",
    "during_source_listing",
    "before_source_document",
    "during_source_deletion",
)
FAULT_SYNTAX = (
    f"one of {', '.join(sorted(POINTS))}, then :nth, then :kill, :raise or :sleep=SECONDS"
)

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
        point_name, *options = text.split(":")
        nth = int(options.pop(0)) if options and options[0].isdigit() else 1
        action, _, seconds = (options.pop(0) if options else "kill").partition("=")
        is_known = point_name in POINTS and action in {"kill", "raise", "sleep"} and nth > 0
        if options or not is_known or (action == "sleep") != bool(seconds):
            raise ValueError(f"ASHIATO_FAULT must be {FAULT_SYNTAX}, not {text!r}.")
        sleep_seconds = float(seconds) if seconds else None
        return cls(point=point_name, nth=nth, seconds=sleep_seconds, raises=action == "raise")

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
