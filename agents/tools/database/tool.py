"""Queries one configured SQLite database.

The tool opens one file by its path, in its own process. It shares no connection with the
application, whose tables are out of reach unless an administrator configures the application's
file.
"""

import asyncio
import json
import logging
import sqlite3
import sys
from asyncio.subprocess import PIPE
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import shorten
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from agents.engine.tool import ToolInput, ToolResult, text_argument

from . import sql_guard, sql_worker
from .sql_worker import fold_case

MAX_TABLES_DESCRIBED = 40
# Each request to a model contains it, and names of an uploaded table's columns can be anything.
MAX_DESCRIPTION_CHARS = 12_000

logger = logging.getLogger(__name__)
_START_LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class DatabaseTool:
    """Read-only SQL over one SQLite file, or over the listed tables and views.

    A listed view can be read even if its tables aren't listed: a way to show some columns and
    hide others.
    """

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

    def __init__(
        self,
        url: str,
        tables: Iterable[str] | None = None,
        max_rows: int = 100,
        timeout: float = 5,
    ) -> None:
        self.uri = _sqlite_uri(url)
        self.max_rows = max_rows
        self.seconds = timeout
        self.timeout = timeout + 2  # after our own limit, which has a clearer message
        self._only = None if tables is None else frozenset(map(fold_case, tables))
        self._look()
        self.description = self._description()

    def _description(self) -> str:
        if not self._tables:
            return f"Runs SQL queries, but isn't available now. {self._trouble}"
        tables = "\n".join(self._described)
        return (
            "Reads a database with one SQL SELECT (SQLite dialect; WITH, joins, window and "
            "date functions work; no comments, no recursion) and returns JSON: columns, rows, "
            f"truncated. Returns up to {self.max_rows} rows: let SQL count, sum and sort. If "
            "the format of a value matters, check it with SELECT DISTINCT first. Tables:\n"
            f"{tables}"
        )

    async def execute(self, input: ToolInput, /) -> ToolResult:
        if not self._tables:
            self._look()
        if not self._tables:
            return ToolResult(error=self._trouble)
        try:
            query = await asyncio.to_thread(
                sql_guard.validate,
                text_argument(input, "sql"),
                [table.name for table in self._tables],
            )
            async with asyncio.timeout(self.seconds):
                return await self._ask(query)
        except sql_guard.QueryRefused as refusal:
            return ToolResult(error=str(refusal), mendable=True)
        except TimeoutError:
            late = f"The query timed out after {self.seconds:g} s. Select less data."
            return ToolResult(error=late, mendable=True)

    async def _ask(self, query: sql_guard.GuardedQuery) -> ToolResult:
        worker = await _start_worker()
        try:
            output, complaint = await worker.communicate(self._request(query))
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.communicate()
        if worker.returncode:
            logger.error("sql_worker ended with %s: %r", worker.returncode, complaint)
            ended = "The query was stopped before it finished. Select less data."
            return ToolResult(error=ended, mendable=True)
        return _parse_reply(output.decode())

    def _request(self, query: sql_guard.GuardedQuery) -> bytes:
        return json.dumps(
            {
                "uri": self.uri,
                "sql": query.sql,
                "tables": [table.name for table in self._tables],
                "functions": sorted(sql_guard.FUNCTIONS),
                "max_rows": self.max_rows,
                "seconds": self.seconds,
            }
        ).encode()

    def _look(self) -> None:
        self._trouble = "The database has no table that is available to this tool."
        try:
            self._tables, self._described = _read_schema(
                self.uri, self._only, _file_version(self.uri)
            )
        except sqlite3.Error as error:
            self._tables, self._described = [], []
            self._trouble = f"The database can't be read: {error}."


async def _start_worker() -> asyncio.subprocess.Process:
    # One at a time, because starting fifty processes at once blocks every other run for 600 ms.
    async with _START_LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", sql_worker.__file__),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={},
            start_new_session=True,
        )


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    columns: list[tuple[str, str]]
    references: dict[str, tuple[str, str | None]]


@lru_cache(maxsize=64)
def _sqlite_uri(url: str) -> str:
    scheme, found, path = url.partition(":///")
    if scheme != "sqlite" or not found or path in ("", ":memory:"):
        raise ValueError(
            "The URL must be sqlite:///relative/file.sqlite3 or "
            "sqlite:////absolute/file.sqlite3. "
            f"This one starts with {scheme.partition(':')[0]!r}."
        )
    return f"{Path(path).resolve().as_uri()}?mode=ro"


def _file_version(uri: str) -> tuple[tuple[int, int], ...]:
    """Return a stamp that changes when the file or its log is written."""
    files = _database_files(uri)
    return tuple((s.st_mtime_ns, s.st_size) for f in files if f.exists() and (s := f.stat()))


@lru_cache(maxsize=64)
def _database_files(uri: str) -> list[Path]:
    path = unquote(urlsplit(uri).path)
    return [Path(path), Path(f"{path}-wal")]


@lru_cache(maxsize=64)
def _read_schema(
    uri: str, only: Collection[str] | None, version: object
) -> tuple[list[_Table], list[str]]:
    """Return the readable tables and their description for a model.

    Every run asks; until something is written, the result is cached.
    """
    tables = _read_tables(uri, only)
    return tables, list(_describe_tables(tables))


def _read_tables(uri: str, only: Collection[str] | None) -> list[_Table]:
    """Return the readable tables and views, without SQLite's own."""
    with closing(sqlite3.connect(uri, uri=True, timeout=0.1)) as connection:
        listed = connection.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND "
            "type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
        )
        names = [name for (name,) in listed if only is None or fold_case(name) in only]
        return [table for name in names if (table := _read_table(connection, name))]


def _read_table(connection: sqlite3.Connection, name: str) -> _Table | None:
    """Return a table, or None for a view whose tables have changed."""
    try:
        columns = connection.execute("SELECT name, type FROM pragma_table_xinfo(?)", [name])
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            return None
        raise
    keys = connection.execute(
        'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', [name]
    )
    return _Table(name, columns.fetchall(), {own: (table, to) for own, table, to in keys})


def _describe_tables(tables: list[_Table]) -> Iterator[str]:
    names = {fold_case(table.name) for table in tables}
    room, described = MAX_DESCRIPTION_CHARS, 0
    for table in tables[:MAX_TABLES_DESCRIBED]:
        columns = ", ".join(_describe_column(table, *each, names) for each in table.columns)
        line = (
            f"{_quote_name(table.name)}({shorten(columns, max(room, 200), placeholder=' …')})"
        )
        room, described = room - len(line), described + 1
        yield line
        if room < 0:
            break
    if rest := tables[described:]:
        listed = ", ".join(_quote_name(table.name) for table in rest)
        yield f"And: {shorten(listed, 2_000, placeholder=' …')}"


def _describe_column(table: _Table, name: str, type: str, names: Collection[str]) -> str:
    column = f"{_quote_name(name)} {type}".rstrip()
    to, key = table.references.get(name, ("", None))
    if fold_case(to) not in names:
        return column
    return f"{column} → {_quote_name(to)}" + (f".{_quote_name(key)}" if key else "")


def _quote_name(name: str) -> str:
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _parse_reply(text: str) -> ToolResult:
    reply = json.loads(text)
    if "error" in reply:
        return ToolResult(error=reply["error"], mendable=reply["mendable"])
    return ToolResult(text)
