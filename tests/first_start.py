"""The data folder after a first start: one worker creates it, all of them copy it."""

import fcntl
from collections.abc import Callable
from pathlib import Path


def create_once(place: Path, make: Callable[[Path], object]) -> Path:
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "made").exists():
            make(place)
            (place / "made").touch()
    return place / "data"
