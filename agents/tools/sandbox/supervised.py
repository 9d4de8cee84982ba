"""Programs that stay, such as MCP servers: each with a supervisor, limits and three pipes."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress

from . import supervisor
from .processes import spawn

MAX_STDERR_BYTES = 4_000
EXIT_TIMEOUT_SECONDS = 1.0
# Longer than the supervisor takes to kill it.
SUPERVISOR_TIMEOUT_SECONDS = supervisor.GRACE_SECONDS + supervisor.KILL_SECONDS + 1.0


class SupervisedProcess:
    """A running program and its supervisor."""

    def __init__(self, supervisor_process: Process, liveness_pipe: int) -> None:
        self._supervisor_process = supervisor_process
        self._liveness_pipe = liveness_pipe
        self._stderr = bytearray()
        self._stderr_task = asyncio.create_task(self._read_stderr())

    @property
    def pid(self) -> int:
        return self._supervisor_process.pid

    @property
    def status(self) -> int | None:
        """Its exit status, once it has ended."""
        return self._supervisor_process.returncode

    @property
    def stderr_tail(self) -> str:
        """The end of its standard error."""
        text = self._stderr.decode(errors="replace")
        return "".join(sign for sign in text if sign.isprintable() or sign == "\n").strip()

    async def output(self) -> AsyncIterator[bytes]:
        """Yield its standard output in pieces, as they come."""
        assert self._supervisor_process.stdout is not None
        while piece := await self._supervisor_process.stdout.read(2**16):
            yield piece

    async def write(self, data: bytes) -> None:
        assert self._supervisor_process.stdin is not None
        self._supervisor_process.stdin.write(data)
        await self._supervisor_process.stdin.drain()

    async def wait(self, seconds: float) -> bool:
        """Wait for its end; return whether it has ended in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._supervisor_process.wait()
        return self._supervisor_process.returncode is not None

    async def stop(self) -> None:
        """Stop it: first by closing its input, then by its supervisor."""
        try:
            if self._supervisor_process.stdin is not None:
                self._supervisor_process.stdin.close()
            await self.wait(EXIT_TIMEOUT_SECONDS)
        finally:
            if self._liveness_pipe >= 0:
                os.close(self._liveness_pipe)
                self._liveness_pipe = -1
        if not await self.wait(SUPERVISOR_TIMEOUT_SECONDS):
            self._supervisor_process.kill()
            # An event loop that closes before it sees the exit leaves a zombie.
            await self.wait(EXIT_TIMEOUT_SECONDS)
        await asyncio.wait([self._stderr_task], timeout=EXIT_TIMEOUT_SECONDS)
        self._stderr_task.cancel()

    async def _read_stderr(self) -> None:
        assert self._supervisor_process.stderr is not None
        while piece := await self._supervisor_process.stderr.read(2**16):
            self._stderr += piece
            del self._stderr[:-MAX_STDERR_BYTES]


async def start(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: str,
    limits: Mapping[str, int],
    temporary_folder: str = "",
    held_descriptors: Collection[int] = (),
) -> SupervisedProcess:
    """Start a program with these variables only; the caller has to stop it.

    The argv is that of `confined_argv` or `bubblewrap.argv`, or of a container's engine. At the
    end the supervisor deletes the temporary folder, and until then it holds the descriptors,
    such as those of locks.
    """
    read_end, liveness_pipe = os.pipe()
    try:
        supervisor_process = await spawn(
            [
                sys.executable,
                "-I",
                "-S",
                supervisor.__file__,
                str(read_end),
                temporary_folder,
                json.dumps(limits),
                *argv,
            ],
            env,
            cwd=cwd,
            pass_fds=(read_end, *held_descriptors),
        )
    except BaseException:
        os.close(liveness_pipe)
        raise
    finally:
        os.close(read_end)
    return SupervisedProcess(supervisor_process, liveness_pipe)
