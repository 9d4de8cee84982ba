"""Starts the child process that parses a file, and kills it when it is late."""

import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from agents import file_types
from agents.tools.mcp import confine

from .parsers.values import (
    MAX_CHARS,
    NeedsRecognition,
    ParsedDocument,
    ParsedPart,
    UnreadableDocument,
)

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 600.0
MEMORY_BYTES = 1_500_000_000
MEMORY_BYTES_WITH_MODELS = 4_000_000_000
MAX_FILE_BYTES = 200_000_000
MAX_OUTPUT_BYTES = MAX_CHARS * 6
MAX_COMPLAINT_BYTES = 4_000
POLL_SECONDS = 0.25
PROGRAM = Path(__file__).with_name("parser_process.py")
# What it may read besides its file: Python, its packages, and the system's libraries.
SYSTEM_PATHS = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix/store", "/proc", "/sys/devices")
ETC_PATHS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime", "/etc/mime.types")
DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")

CRASHED = "This file can't be read: its content makes the parser crash."
TOO_LATE = "Reading took longer than {seconds:.0f} s. Split the file and try again."
TOO_MUCH_TEXT = "This file contains too much text. Split it and upload the parts."
TOO_LARGE = f"This file is larger than {MAX_FILE_BYTES // 1_000_000} MB."
KILLED = "This file needs too much memory or time to be read."

Progress = Callable[[int, int], None]


def parse(
    path: str | Path,
    name: str,
    *,
    mime_type: str = "",
    progress: Progress | None = None,
    deadline: float = DEADLINE_SECONDS,
    recognizes: bool = True,
) -> ParsedDocument:
    """Parse a file in a child process; raise UnreadableDocument with a sentence for the user.

    Without `recognizes`, NeedsRecognition is raised for a file with images to read.

    `progress` is called with what is done and the total, several times a second; if it raises,
    the child is killed and the exception goes on.
    """
    if os.stat(path).st_size > MAX_FILE_BYTES:
        raise UnreadableDocument(TOO_LARGE)
    request = {
        "file_types": file_types.__file__,
        "path": os.path.abspath(path),
        "name": name,
        "mime_type": mime_type,
        "seconds": deadline,
        "recognizes": recognizes,
        "limits": {
            "cpu": int(deadline * 4) + 1,  # of several threads
            "memory": MEMORY_BYTES,
            "memory_with_models": MEMORY_BYTES_WITH_MODELS,
            "nice": 10,
        },
    }
    return _run(_argv(os.path.abspath(path)), request, progress, deadline)


def _run(
    argv: list[str], request: dict[str, Any], progress: Progress | None, deadline: float
) -> ParsedDocument:
    child = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
        start_new_session=True,
        bufsize=0,
    )
    conversation = _Conversation(child, progress, deadline)
    try:
        return conversation.result(request)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()


class _Conversation:
    """One request to a child, and what it says until it ends."""

    def __init__(
        self, child: "subprocess.Popen[bytes]", progress: Progress | None, deadline: float
    ) -> None:
        self.child, self.progress = child, progress
        self.seconds, self.end = deadline, time.monotonic() + deadline
        self.complaint = b""
        self.done = self.total = self.received = 0

    def result(self, request: dict[str, Any]) -> ParsedDocument:
        assert self.child.stdin is not None
        with suppress(BrokenPipeError):
            self.child.stdin.write(json.dumps(request).encode() + b"\n")
        parts: list[ParsedPart] = []
        for message in self._messages():
            if "error" in message:
                raise UnreadableDocument(message["error"])
            if "needs_recognition" in message:
                raise NeedsRecognition
            if "part" in message:
                parts.append(ParsedPart(**message["part"]))
            if "progress" in message:
                self.done, self.total = message["progress"]
            if "done" in message:
                self._check()  # a short file is over before anything was reported
                return ParsedDocument(parts=parts, **message["done"])
        raise UnreadableDocument(self._why_ended())

    def _messages(self) -> Iterator[dict[str, Any]]:
        buffer = b""
        for piece in self._pieces():
            self.received += len(piece)
            if self.received > MAX_OUTPUT_BYTES:
                raise UnreadableDocument(TOO_MUCH_TEXT)
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                yield json.loads(line)

    def _pieces(self) -> Iterator[bytes]:
        """Yield what the child writes; report progress while waiting."""
        assert self.child.stdout is not None
        assert self.child.stderr is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            selector.register(self.child.stderr, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(POLL_SECONDS):
                    piece = os.read(key.fd, 1_000_000)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self.child.stderr:
                        self.complaint = (self.complaint + piece)[-MAX_COMPLAINT_BYTES:]
                    else:
                        yield piece
                self._check()

    def _check(self) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total)
        if time.monotonic() > self.end:
            raise UnreadableDocument(TOO_LATE.format(seconds=self.seconds))

    def _why_ended(self) -> str:
        code = self.child.wait()
        complaint = self.complaint.decode("utf-8", "replace")
        logger.warning("The parser ended with %s: %s", code, complaint)
        is_over_limit = code in (-signal.SIGKILL, -signal.SIGXCPU)
        return KILLED if is_over_limit or "memory allocation" in complaint else CRASHED


def _argv(path: str) -> list[str]:
    python = [sys.executable, "-I", str(PROGRAM)]
    if not _has_landlock():
        return python
    policy = {"read": [*_readable_paths(), path], "write": list(DEVICES)}
    return [sys.executable, "-I", "-S", confine.__file__, json.dumps(policy), *python]


@cache
def _has_landlock() -> bool:
    return confine.landlock_abi() > 0


@cache
def _readable_paths() -> tuple[str, ...]:
    """Return where code is, by name and by resolved path."""
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(PROGRAM.parent)]
    wanted = [*folders, file_types.__file__, *SYSTEM_PATHS, *ETC_PATHS]
    names = [name for path in wanted for name in (path, os.path.realpath(path))]
    return tuple(dict.fromkeys(names))
