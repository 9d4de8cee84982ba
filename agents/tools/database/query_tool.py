"""What all database tools share: the guard, the child process and its deadline."""

import asyncio
import json
import logging
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from agents.engine.tool import ToolInput, ToolResult, text_argument

from . import sql_guard
from .schema import Schema

NO_TABLE = "The database has no table that is available to this tool."

logger = logging.getLogger(__name__)
_START_LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class WorkerFailed(Exception):
    """Raised when a worker ended without a reply."""


async def run_worker(
    command: Sequence[str], request: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """Return a worker's reply; it is killed after so many seconds, or with its caller.

    The request has credentials, so it goes through a pipe: arguments of a process are public.
    """
    worker = await _start(command)
    try:
        async with asyncio.timeout(seconds):
            output, complaint = await worker.communicate(json.dumps(request).encode())
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.communicate()
    if worker.returncode:
        logger.error("%s ended with %s: %r", command[-1], worker.returncode, complaint)
        raise WorkerFailed
    reply: dict[str, Any] = json.loads(output)
    return reply


async def _start(command: Sequence[str]) -> asyncio.subprocess.Process:
    # One at a time, because starting fifty processes at once blocks every other run for 600 ms.
    async with _START_LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={},
            start_new_session=True,
        )


class QueryTool:
    """Read-only SQL over the tables of a schema; subclasses say where it runs."""

    name = "database"
    parameters = {
        "type": "object",
        "properties": {
            "sql": {"type": "string", "description": "One SELECT statement, without comments"}
        },
        "required": ["sql"],
    }
    effect = "read"
    # An administrator chose the database, but not what others have written into its rows.
    is_untrusted = True

    schema: Schema
    description: str
    trouble = NO_TABLE

    def __init__(self, *, max_rows: int, timeout: float, about: str = "") -> None:
        self.max_rows = max_rows
        self.seconds = timeout
        self.timeout = timeout + 2  # after our own limit, which has a clearer message
        self.about = about

    def describe(self) -> str:
        """Return what the model is told: the administrator's words, the rules, the tables."""
        if not self.schema.tables:
            return f"Runs SQL queries, but isn't available now. {self.trouble}"
        label = self.schema.dialect.label
        tables = "\n".join(self.schema.describe())
        text = (
            f"Reads a database with one SQL SELECT ({label} dialect; WITH, joins, window and "
            "date functions work; no comments, no recursion) and returns JSON: columns, rows, "
            f"truncated. Returns up to {self.max_rows} rows: let SQL count, sum and sort. If "
            "the format of a value matters, check it with SELECT DISTINCT first. Tables:\n"
            f"{tables}"
        )
        return f"{self.about.strip()}\n{text}" if self.about.strip() else text

    async def execute(self, input: ToolInput, /) -> ToolResult:
        await self.refresh()
        if not self.schema.tables:
            return ToolResult(error=self.trouble)
        try:
            query = await asyncio.to_thread(
                sql_guard.validate, text_argument(input, "sql"), self.schema
            )
            return await self.ask(query)
        except sql_guard.QueryRefused as refusal:
            return ToolResult(error=str(refusal), mendable=True)
        except TimeoutError:
            late = f"The query timed out after {self.seconds:g} s. Select less data."
            return ToolResult(error=late, mendable=True)

    async def refresh(self) -> None:
        """Read the schema again if it isn't known."""

    async def ask(self, query: sql_guard.GuardedQuery) -> ToolResult:
        """Run a query in its worker."""
        try:
            reply = await run_worker(self.command(), await self.request(query), self.seconds)
        except WorkerFailed:
            ended = "The query was stopped before it finished. Select less data."
            return ToolResult(error=ended, mendable=True)
        if "error" in reply:
            return ToolResult(error=reply["error"], mendable=reply["mendable"])
        return ToolResult(json.dumps(reply, ensure_ascii=False))

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    async def request(self, query: sql_guard.GuardedQuery) -> dict[str, Any]:
        raise NotImplementedError
