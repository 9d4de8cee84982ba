"""An MCP server that is a local program: its process, output lines and errors."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from agents.tools.sandbox import spawn

from . import data_files, launch, sandbox, supervisor
from .config import ServerConfig
from .server_folder import ServerFolder

MAX_LINE_BYTES = 8 * 2**20
EDGE_BYTES = 512
MAX_STDERR_BYTES = 4_000
EXIT_TIMEOUT_SECONDS = 1.0
# Longer than the supervisor takes to kill it.
SUPERVISOR_TIMEOUT_SECONDS = supervisor.GRACE_SECONDS + supervisor.KILL_SECONDS + 1.0

ID_PATTERN = rb'"id":\s*(\d{1,18}|"[^"\\]{1,200}")\s*'
ID_FIRST = re.compile(rb'\{\s*"jsonrpc":\s*"2\.0",\s*' + ID_PATTERN + rb",")
ID_LAST = re.compile(rb",\s*" + ID_PATTERN + rb"\}\s*$")


@dataclass(slots=True)
class OutputLine:
    """One line of output; of an overlong one, both ends."""

    size: int = 0
    text: bytearray = field(default_factory=bytearray)
    end: bytes = b""

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size <= MAX_LINE_BYTES:
            self.text += part
            return
        self.end = ((self.end or bytes(self.text[-EDGE_BYTES:])) + part[-EDGE_BYTES:])[
            -EDGE_BYTES:
        ]
        del self.text[EDGE_BYTES:]

    @property
    def is_too_long(self) -> bool:
        return self.size > MAX_LINE_BYTES

    @property
    def answers(self) -> bytes:
        """The id of the request it answers, as JSON, if it can be found."""
        found = ID_FIRST.match(self.text) or ID_LAST.search(self.end or bytes(self.text))
        return found[1] if found else b""


class McpProcess:
    """A running server and its supervisor."""

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

    async def lines(self) -> AsyncIterator[OutputLine]:
        assert self._supervisor_process.stdout is not None
        line = OutputLine()
        while chunk := await self._supervisor_process.stdout.read(2**16):
            *ended, rest = chunk.split(b"\n")
            for part in ended:
                line.add(part)
                yield line
                line = OutputLine()
            line.add(rest)
        if line.size:
            yield line

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
            self._close_lifeline()
        if not await self.wait(SUPERVISOR_TIMEOUT_SECONDS):
            self._supervisor_process.kill()
            # An event loop that closes before it sees the exit leaves a zombie.
            await self.wait(EXIT_TIMEOUT_SECONDS)
        await asyncio.wait([self._stderr_task], timeout=EXIT_TIMEOUT_SECONDS)
        self._stderr_task.cancel()

    def _close_lifeline(self) -> None:
        if self._liveness_pipe >= 0:
            os.close(self._liveness_pipe)
            self._liveness_pipe = -1

    async def _read_stderr(self) -> None:
        assert self._supervisor_process.stderr is not None
        while chunk := await self._supervisor_process.stderr.read(2**16):
            self._stderr += chunk
            del self._stderr[:-MAX_STDERR_BYTES]


@asynccontextmanager
async def run_server(config: ServerConfig) -> AsyncIterator[McpProcess]:
    """Start a server in its own isolated folder, and stop it afterwards."""
    with ServerFolder(config) as folder:
        spec = await asyncio.to_thread(_prepare, config, folder)
        process = await _start(spec, folder)
    try:
        yield process
    finally:
        # Canceled halfway, it would leave the process behind.
        await _finish(process.stop())


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work that has a deadline of its own, also while being canceled."""
    task = asyncio.create_task(work)
    canceled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            canceled = error
    task.result()
    if canceled is not None:
        raise canceled


@dataclass(frozen=True, slots=True, kw_only=True)
class _LaunchSpec:
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    limits: str


def _prepare(config: ServerConfig, folder: ServerFolder) -> _LaunchSpec:
    """Prepare the launch, checking again: files and links may have changed."""
    launch.check_launch(config)
    path = folder.prepare()
    return _LaunchSpec(
        argv=sandbox.sandbox_argv(config, path),
        env={**launch.build_environment(config, path), **data_files.variables(config, path)},
        cwd=config.cwd or str(path / "work"),
        limits=config.limits.to_json(),
    )


async def _start(spec: _LaunchSpec, folder: ServerFolder) -> McpProcess:
    read_end, liveness_pipe = os.pipe()
    try:
        supervisor_process = await spawn(
            [
                *(sys.executable, "-I", "-S", supervisor.__file__, str(read_end)),
                *(folder.hand_over(), spec.limits, *spec.argv),
            ],
            spec.env,
            cwd=spec.cwd,
            pass_fds=(read_end, *folder.lock_descriptors),
        )
    except BaseException:
        os.close(liveness_pipe)
        raise
    finally:
        os.close(read_end)
    return McpProcess(supervisor_process, liveness_pipe)
