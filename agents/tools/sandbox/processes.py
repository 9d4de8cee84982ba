"""Starts confined children, and kills them with everything they started."""

import asyncio
import json
import os
import selectors
import signal
import subprocess
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from . import worker as workers
from .worker import Grant, Worker

POLL_SECONDS = 0.1
COMPLAINT_START_BYTES = 200_000
COMPLAINT_END_BYTES = 4_000

Request = Mapping[str, Any]
_START_LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class WorkerFailed(Exception):
    """Raised when a child ended without a usable reply, with what it wrote to its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a child left behind."""

    code: int
    output: bytes
    complaint: str

    def json(self) -> dict[str, Any]:
        """Return its reply; raise WorkerFailed if there is none."""
        try:
            reply: dict[str, Any] = json.loads(self.output)
        except ValueError:
            reply = {}
        if self.code or not isinstance(reply, dict) or not reply:
            raise WorkerFailed(f"ended with {self.code}: {self.complaint[-500:]!r}")
        return reply


def run(
    worker: Worker,
    request: Request,
    grant: Grant,
    *,
    program: Sequence[str] = (),
    on_output: Callable[[bytes], None] | None = None,
    report: Callable[[], None] = lambda: None,
) -> Reply:
    """Run a child in this thread and return its reply; raise TimeoutError if it is late.

    `report` is called several times a second; if it or `on_output` raises, the child is killed.
    """
    end = time.monotonic() + grant.seconds
    received = _Received(worker.output_bytes, on_output)
    child = subprocess.Popen(
        workers.command(worker, grant, program),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=workers.environment(worker, grant),
        start_new_session=True,
        bufsize=0,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        with suppress(BrokenPipeError):
            # A request is shorter than what a pipe holds, so this doesn't wait for the child.
            child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.close()
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ, received.add_output)
            selector.register(child.stderr, selectors.EVENT_READ, received.add_complaint)
            while selector.get_map():
                for key, _ in selector.select(POLL_SECONDS):
                    piece = os.read(key.fd, 1_000_000)
                    if piece:
                        key.data(piece)
                    else:
                        selector.unregister(key.fileobj)
                report()
                if time.monotonic() > end:
                    raise TimeoutError
        # A child can close its pipes and go on.
        while not _has_ended(child):
            report()
            if time.monotonic() > end:
                raise TimeoutError
    finally:
        kill_group(child.pid)
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            pipe.close()
    return received.reply(child.returncode)


def _has_ended(child: "subprocess.Popen[bytes]") -> bool:
    with suppress(subprocess.TimeoutExpired):
        child.wait(POLL_SECONDS)
    return child.returncode is not None


async def run_async(worker: Worker, request: Request, grant: Grant) -> Reply:
    """Run a child and return its reply; it is killed with its caller, or when it is late.

    Raises TimeoutError. The request can have credentials, so it goes through a pipe: arguments
    of a process are public.
    """
    received = _Received(worker.output_bytes)
    child = await spawn(workers.command(worker, grant), workers.environment(worker, grant))
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async with asyncio.timeout(grant.seconds):
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.close()
            await asyncio.gather(
                _read(child, child.stdout, received.add_output),
                _read(child, child.stderr, received.add_complaint),
            )
            await child.wait()
    finally:
        if child.returncode is None:
            kill_group(child.pid)
            await child.communicate()
    received.check_size()
    assert child.returncode is not None
    return received.reply(child.returncode)


async def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: str | None = None,
    pass_fds: Collection[int] = (),
) -> Process:
    """Start a program with these variables only, in a session of its own, with three pipes."""
    # One at a time, because starting fifty processes at once blocks every other run for 600 ms.
    async with _START_LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(env),
            cwd=cwd,
            pass_fds=tuple(pass_fds),
            start_new_session=True,
        )


class _Received:
    """What a child has written so far, within limits."""

    def __init__(
        self, max_bytes: int, on_output: Callable[[bytes], None] | None = None
    ) -> None:
        self.max_bytes = max_bytes
        self.on_output = on_output
        self.size = 0
        self.output = bytearray()
        self.complaint = bytearray()

    def add_output(self, piece: bytes) -> None:
        self.size += len(piece)
        self.check_size()
        if self.on_output is not None:
            self.on_output(piece)
        else:
            self.output += piece

    def check_size(self) -> None:
        if self.size > self.max_bytes:
            raise WorkerFailed(f"wrote more than {self.max_bytes:,} bytes")

    def add_complaint(self, piece: bytes) -> None:
        self.complaint += piece
        if len(self.complaint) > COMPLAINT_START_BYTES + COMPLAINT_END_BYTES:
            del self.complaint[COMPLAINT_START_BYTES:-COMPLAINT_END_BYTES]

    def reply(self, code: int) -> Reply:
        complaint = self.complaint.decode("utf-8", "replace")
        return Reply(code=code, output=bytes(self.output), complaint=complaint)


async def _read(
    child: Process, stream: asyncio.StreamReader, add: Callable[[bytes], None]
) -> None:
    """Read to the end even if it is too much: only then is the pipe closed."""
    while piece := await stream.read(2**16):
        try:
            add(piece)
        except WorkerFailed:
            kill_group(child.pid)


def kill_group(pid: int) -> None:
    """Kill a child with everything that it started in its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
