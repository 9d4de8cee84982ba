"""Processes that a row left running: found wherever they were started, and ended."""

import ctypes
import sys
from contextlib import suppress

import psutil

GRACE_SECONDS = 10
SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of processes whose parent ends, so that they are found."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_leftovers() -> list[str]:
    """End all processes that don't end by themselves soon, and return their names."""
    started = psutil.Process().children(recursive=True)
    _, left = psutil.wait_procs(started, GRACE_SECONDS)
    names = set()
    for process in left:
        with suppress(psutil.NoSuchProcess):
            names.add(process.name())
            process.kill()
    psutil.wait_procs(left, GRACE_SECONDS)
    return sorted(names)
