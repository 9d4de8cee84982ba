"""Runs a program on one file, confined: it can read that file and write to one folder."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from django.utils.translation import gettext_noop

from agents.knowledge.parsing import UnreadableDocument
from agents.tools.mcp import confine

LAUNCHER = Path(__file__).with_name("limited_process.py")
POLL_SECONDS = 0.1
MAX_COMPLAINT_CHARS = 200_000
SYSTEM_PATHS = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix/store", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/urandom")
TOO_LATE = gettext_noop("This file took too long to decode. Cut it into shorter parts.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a program may use and, besides the system's libraries, read."""

    seconds: float
    memory: int = 2_000_000_000
    output: int = 200_000_000
    files: int = 64
    threads: int = 1
    readable: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def run(
    command: Sequence[str], folder: Path, limits: Limits, report: Callable[[], None]
) -> tuple[str, int]:
    """Return what a program says and its exit code; raise UnreadableDocument if it is late.

    `report` is called several times a second; if it raises, the program is killed.
    """
    end = time.monotonic() + limits.seconds
    log = folder / "program.log"
    with log.open("w+b") as said:
        child = subprocess.Popen(
            _confined(command, folder, limits),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={},
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                if time.monotonic() > end:
                    raise UnreadableDocument(TOO_LATE)
                report()
                time.sleep(POLL_SECONDS)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        said.seek(0)
        text = said.read(MAX_COMPLAINT_CHARS).decode("utf-8", "replace")
    log.unlink(missing_ok=True)
    return text, child.returncode


def _confined(command: Sequence[str], folder: Path, limits: Limits) -> list[str]:
    values = {
        "cpu": int(limits.seconds * limits.threads) + 1,
        "memory": limits.memory,
        "output": limits.output,
        "files": limits.files,
        "nice": 10,
        "environment": dict(limits.environment),
    }
    python = [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(values), *command]
    if confine.landlock_abi() <= 0:
        return python
    code = [sys.prefix, sys.base_prefix, str(LAUNCHER.parent), command[0]]
    wanted = [*code, *SYSTEM_PATHS, *limits.readable]
    policy = {
        "read": [name for each in wanted for name in (each, os.path.realpath(each))],
        "write": [*DEVICES, str(folder)],
    }
    return [sys.executable, "-I", "-S", confine.__file__, json.dumps(policy), *python]
