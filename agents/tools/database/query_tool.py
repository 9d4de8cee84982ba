"""What all database tools share: the guard, the child process and its deadline."""

import asyncio
import json
import logging
from typing import Any

from agents.engine.tool import ToolInput, ToolResult, text_argument
from agents.tools import sandbox

from . import sql_guard
from .schema import Schema

NO_TABLE = "The database has no table that is available to this tool."

logger = logging.getLogger(__name__)


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
            message = f"The query timed out after {self.seconds:g} s. Select less data."
            return ToolResult(error=message, mendable=True)

    async def refresh(self) -> None:
        """Read the schema again if it isn't known."""

    async def ask(self, query: sql_guard.GuardedQuery) -> ToolResult:
        """Run a query in its worker."""
        worker, grant = self.worker()
        request = await self.request(query)
        try:
            reply = (await sandbox.run_async(worker, request, grant)).json()
        except sandbox.WorkerFailed as error:
            logger.error("The process of a query %s", error)
            message = "The query was stopped before it finished. Select less data."
            return ToolResult(error=message, mendable=True)
        if "error" in reply:
            return ToolResult(error=reply["error"], mendable=reply["mendable"])
        return ToolResult(json.dumps(reply, ensure_ascii=False))

    def worker(self) -> tuple[sandbox.Worker, sandbox.Grant]:
        """Return the kind of child that runs a query, and what it may use."""
        raise NotImplementedError

    async def request(self, query: sql_guard.GuardedQuery) -> dict[str, Any]:
        raise NotImplementedError
