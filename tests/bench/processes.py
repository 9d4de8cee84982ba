"""Measured processes: started clean, watched from outside, always terminated."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 60
# Variables that would affect or redirect what is measured.
FOREIGN = ("ASHIATO_", "PYTHONDONTWRITEBYTECODE", "HOST", "PORT", "DJANGO_", "LITELLM_")
FOREIGN_ENDS = ("_PROXY", "_proxy", "_API_KEY", "_BASE_URL")


class DiedEarly(Exception):
    """Raised when a measured process ends by itself, or isn't ready in time."""


@contextmanager
def child(
    *arguments: str | int,
    program: str | Path = sys.executable,
    log: Path | None = None,
    **options,
) -> Iterator[psutil.Popen]:
    """Start a process in its own group, Python by default, and terminate it afterwards."""
    command = [str(program), *map(str, arguments)]
    env = clean_environment() | options.pop("env", {})
    with (log or Path(os.devnull)).open("ab") as output:
        options = {"stdout": output, "stderr": output, "cwd": ROOT} | options
        process = psutil.Popen(command, env=env, start_new_session=True, **options)
    try:
        yield process
    finally:
        end(process)


def end(process: psutil.Popen) -> None:
    for sign, patience in ((signal.SIGTERM, 8), (signal.SIGKILL, 5)):
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with suppress(subprocess.TimeoutExpired, psutil.TimeoutExpired):
                process.wait(patience)


def clean_environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(FOREIGN) and not name.endswith(FOREIGN_ENDS)
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_page(
    url: str, process: psutil.Popen, log: Path | None = None, patience: float = TIMEOUT_SECONDS
) -> None:
    """Wait until the page is served."""
    _wait(lambda: _is_served(url), process, log, patience)


def wait_for_port(port: int, process: psutil.Popen, log: Path | None = None) -> None:
    _wait(lambda: _is_open(port), process, log)


def cpu(process: psutil.Popen) -> float:
    """Return the CPU seconds of a process and its children so far, also of ended ones."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            total += times.user + times.system
            total += getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
    return total


def resident_mb(process: psutil.Popen) -> float:
    """Return the memory of a process and its children."""
    total = 0
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            total += each.memory_info().rss
    return total / 1e6


def busy_seconds() -> float:
    """Return the CPU seconds of the whole machine."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0) - getattr(times, "guest", 0)


def _wait(
    is_there: Callable[[], bool],
    process: psutil.Popen,
    log: Path | None,
    patience: float = TIMEOUT_SECONDS,
) -> None:
    end = time.monotonic() + patience
    while not is_there():
        if process.poll() is not None or time.monotonic() > end:
            is_slow = process.poll() is None
            cause = f"Not ready within {patience:g} s" if is_slow else "Ended by itself"
            raise DiedEarly(f"{cause}: {log.read_text()[-2000:] if log else process.args}")
        time.sleep(0.02)


def _is_open(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _is_served(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=10) as page:
        return page.status == 200
    return False
