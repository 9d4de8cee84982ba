"""Runs, from preparing one to its last event: what the rest of the product calls.

Everything else in this package is for the package itself, `agents.web`, and tests.
"""

from .service import (
    StillAnswering,
    drive,
    launch,
    prepare,
    prepare_again,
    prepare_rest,
    prepare_trial,
    resume,
    shut_down,
    stop,
    take_over,
    tend,
    wait,
    wake,
    when_over,
)

__all__ = [
    "StillAnswering",
    "drive",
    "launch",
    "prepare",
    "prepare_again",
    "prepare_rest",
    "prepare_trial",
    "resume",
    "shut_down",
    "stop",
    "take_over",
    "tend",
    "wait",
    "wake",
    "when_over",
]
