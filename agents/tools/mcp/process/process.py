"""An MCP server that is a local program: its process and the lines that it writes."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.tools.sandbox import supervised
from agents.tools.sandbox.supervised import SupervisedProcess

from ..configuration.config import ServerConfig
from . import data_files, launch, sandbox
from .server_folder import ServerFolder

MAX_LINE_BYTES = 8 * 2**20
EDGE_BYTES = 512

ID_PATTERN = rb'"id":\s*(\d{1,18}|"[^"\\]{1,200}")\s*'
ID_FIRST = re.compile(rb'\{\s*"jsonrpc":\s*"2\.0",\s*' + ID_PATTERN + rb",")
ID_LAST = re.compile(rb",\s*" + ID_PATTERN + rb"\}\s*$")


@dataclass(slots=True)
class OutputLine:
    """One line of output; of an overlong one, both ends."""

    size: int = 0
    text: bytearray = field(default_factory=bytearray)
    end: bytes = b""

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self.size <= MAX_LINE_BYTES:
            self.text += chunk
            return
        end = (self.end or bytes(self.text[-EDGE_BYTES:])) + chunk[-EDGE_BYTES:]
        self.end = end[-EDGE_BYTES:]
        del self.text[EDGE_BYTES:]

    @property
    def is_too_long(self) -> bool:
        return self.size > MAX_LINE_BYTES

    @property
    def answers(self) -> bytes:
        """The id of the request it answers, as JSON, if it can be found."""
        match = ID_FIRST.match(self.text) or ID_LAST.search(self.end or bytes(self.text))
        return match[1] if match else b""


async def output_lines(process: SupervisedProcess) -> AsyncIterator[OutputLine]:
    """Yield what a server writes, line by line."""
    line = OutputLine()
    async for chunk in process.output():
        *line_ends, next_start = chunk.split(b"\n")
        for line_end in line_ends:
            line.add(line_end)
            yield line
            line = OutputLine()
        line.add(next_start)
    if line.size:
        yield line


@asynccontextmanager
async def run_server(config: ServerConfig) -> AsyncIterator[SupervisedProcess]:
    """Start a server in its own isolated folder, and stop it afterwards."""
    with ServerFolder(config) as folder:
        path, argv, env = await asyncio.to_thread(_prepare, config, folder)
        process = await supervised.start(
            argv,
            env,
            cwd=config.cwd or str(path / "work"),
            limits=config.limits.in_bytes(),
            temporary_folder=folder.hand_over(),
            held_descriptors=folder.lock_descriptors,
        )
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


def _prepare(
    config: ServerConfig, folder: ServerFolder
) -> tuple[Path, Sequence[str], dict[str, str]]:
    """Return its folder, argv and variables; checked again, as files may have changed."""
    launch.check_launch(config)
    path = folder.prepare()
    argv = sandbox.sandbox_argv(config, path)
    env = {**launch.build_environment(config, path), **data_files.variables(config, path)}
    return path, argv, env
