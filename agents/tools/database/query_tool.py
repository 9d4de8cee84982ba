"""What all database tools share: the guard, the child process and its deadline."""

import asyncio
import json
import logging
from importlib import import_module
from typing import Any

from agents.engine.sentences import Sentence as _
from agents.engine.sentences import unpack
from agents.engine.tool import ToolInput, ToolResult, text_argument
from agents.tools import sandbox

from .guarded_query import GuardedQuery, QueryRefused
from .schema import Schema

SQL_GUARD = "agents.tools.database.sql_guard"
NO_TABLE = _("The database has no table that is available to this tool.")

logger = logging.getLogger(__name__)


class QueryTool:
    """Read-only SQL over the tables of a schema; subclasses say where it runs."""

    name = "database"
    parameters = {
        "type": "object",
        "properties": {
            "sql": {
                "type": "string",
                "description": _("One SELECT statement, without comments"),
            }
        },
        "required": ["sql"],
    }
    effect = "read"
    # An administrator chose the database, but not what others have written into its rows.
    is_untrusted = True

    schema: Schema
    description: str
    trouble: str = NO_TABLE

    def __init__(self, *, max_rows: int, timeout: float, introduction: str = "") -> None:
        self.max_rows = max_rows
        self.seconds = timeout
        self.timeout = timeout + 2  # after our own limit, which has a clearer message
        self.introduction = introduction

    def describe(self) -> str:
        """Return what the model is told: the administrator's words, the rules, the tables."""
        if not self.schema.tables:
            return _("Runs SQL queries, but isn't available now. %(why)s", why=self.trouble)
        label = self.schema.dialect.label
        tables = "\n".join(self.schema.describe())
        text = _(
            "Reads a database with one SQL SELECT (%(kind)s dialect; WITH, "
            "joins, window and date functions work; no comments, no recursion) "
            "and returns JSON: columns, rows, truncated. Returns up to "
            "%(limit)s rows: let SQL count, sum and sort. If the format of a "
            "value matters, check it with SELECT DISTINCT first. Tables:\n"
            "%(tables)s",
            kind=label,
            limit=self.max_rows,
            tables=tables,
        )
        return f"{self.introduction.strip()}\n{text}" if self.introduction.strip() else text

    async def execute(self, input: ToolInput, /) -> ToolResult:
        await self.refresh()
        if not self.schema.tables:
            return ToolResult(error=self.trouble)
        try:
            # Its SQL parser is imported by the first query, off the event loop.
            sql_guard = await asyncio.to_thread(import_module, SQL_GUARD)
            query = await asyncio.to_thread(
                sql_guard.validate, text_argument(input, "sql"), self.schema
            )
            return await self.ask(query)
        except QueryRefused as refusal:
            return ToolResult(error=str(refusal), mendable=True)
        except TimeoutError:
            message = _(
                "The query timed out after %(seconds)s s. Select less data.",
                seconds=f"{self.seconds:g}",
            )
            return ToolResult(error=message, mendable=True)

    async def refresh(self) -> None:
        """Read the schema again if it isn't known."""

    async def ask(self, query: GuardedQuery) -> ToolResult:
        """Run a query in its worker."""
        worker, grant = self.worker()
        request = await self.request(query)
        try:
            reply = (await sandbox.run_async(worker, request, grant)).json()
        except sandbox.WorkerFailed as error:
            logger.error("The process of a query %s", error)
            message = _("The query was stopped before it finished. Select less data.")
            return ToolResult(error=message, mendable=True)
        if "error" in reply:
            return ToolResult(error=unpack(reply["error"]), mendable=reply["mendable"])
        return ToolResult(json.dumps(reply, ensure_ascii=False))

    def worker(self) -> tuple[sandbox.Worker, sandbox.Grant]:
        """Return the kind of child that runs a query, and what it may use."""
        raise NotImplementedError

    async def request(self, query: GuardedQuery) -> dict[str, Any]:
        raise NotImplementedError
