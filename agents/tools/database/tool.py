"""Queries one configured SQLite database.

The tool opens one file by its path, in its own process. It shares no connection with the
application, whose tables are out of reach unless an administrator configures the application's
file.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agents.engine import sentences
from agents.engine.sentences import Sentence as _
from agents.tools.sandbox import Grant, Worker

from . import sql_worker
from .dialects import SQLITE, DatabaseKind
from .guarded_query import GuardedQuery
from .query_tool import NO_TABLE, QueryTool
from .schema import Allowed, Column, Schema, Table
from .sql_worker import fold_case

SQLITE_QUERY = Worker(
    name="SQLite query",
    program=sql_worker.__file__,
    needs_packages=False,
    memory_bytes=sql_worker.MEMORY_BYTES,
    modules=(sentences,),
    # Only enough for the small index file that readers of a write-ahead log share.
    file_bytes=2**16,
    open_files=16,
)
EMPTY = Schema(kind=DatabaseKind.SQLITE, tables=(), database="main")


class DatabaseTool(QueryTool):
    """Read-only SQL over one SQLite file, or over the listed tables and views.

    A listed view can be read even if its tables aren't listed: a way to show some columns and
    hide others. A list of columns does the same for a table.
    """

    def __init__(
        self,
        url: str,
        tables: Iterable[str] | Allowed | None = None,
        max_rows: int = 100,
        timeout: float = 5,
        introduction: str = "",
    ) -> None:
        super().__init__(max_rows=max_rows, timeout=timeout, introduction=introduction)
        self.uri = sqlite_uri(url)
        if tables is None or isinstance(tables, Mapping):
            self._allowed: Allowed | None = tables
        else:
            self._allowed = dict.fromkeys(tables)
        self._look()
        self.description = self.describe()

    async def refresh(self) -> None:
        if not self.schema.tables:
            self._look()

    def worker(self) -> tuple[Worker, Grant]:
        path = _database_files(self.uri)[0]
        grant = Grant(
            seconds=self.seconds,
            readable=[str(path), f"{path}-wal", f"{path}-journal"],
            writable=[f"{path}-shm"],
        )
        return SQLITE_QUERY, grant

    async def request(self, query: GuardedQuery) -> dict[str, Any]:
        limited = [table for table in self.schema.tables if table.hides]
        return {
            "uri": self.uri,
            "log": str(_database_files(self.uri)[1]),
            "sql": query.sql,
            "tables": [table.name for table in self.schema.tables],
            "columns": {table.name: [c.name for c in table.columns] for table in limited},
            "functions": sorted(SQLITE.functions),
            "max_rows": self.max_rows,
            "seconds": self.seconds,
        }

    def _look(self) -> None:
        self.trouble = NO_TABLE
        try:
            self.schema = read_schema(self.uri).limited_to(self._allowed)
        except sqlite3.Error as error:
            self.schema = EMPTY
            self.trouble = _("The database can't be read: %(reason)s.", reason=error)


@lru_cache(maxsize=64)
def sqlite_uri(url: str) -> str:
    scheme, separator, path = url.partition(":///")
    if scheme != "sqlite" or not separator or path in ("", ":memory:"):
        raise ValueError(
            _(
                "The URL must be sqlite:///relative/file.sqlite3 or "
                "sqlite:////absolute/file.sqlite3. This one starts with %(scheme)s.",
                scheme=repr(scheme.partition(":")[0]),
            )
        )
    return f"{Path(path).resolve().as_uri()}?mode=ro"


def read_schema(uri: str) -> Schema:
    """Return a file's tables and views; from a cache until the file or its log is written."""
    stats = [file.stat() for file in _database_files(uri) if file.exists()]
    return _read_schema(uri, tuple((stat.st_mtime_ns, stat.st_size) for stat in stats))


@lru_cache(maxsize=64)
def _database_files(uri: str) -> list[Path]:
    path = unquote(urlsplit(uri).path)
    return [Path(path), Path(f"{path}-wal")]


@lru_cache(maxsize=64)
def _read_schema(uri: str, version: object) -> Schema:
    with closing(sqlite3.connect(uri, uri=True, timeout=0.1)) as connection:
        listed = connection.execute(
            "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND "
            "type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
        ).fetchall()
        names = {fold_case(name): name for name, _type in listed}
        tables = [_read_table(connection, name, type, names) for name, type in listed]
    readable = tuple(table for table in tables if table)
    return Schema(kind=DatabaseKind.SQLITE, tables=readable, database="main")


def _read_table(
    connection: sqlite3.Connection, name: str, type: str, names: Mapping[str, str]
) -> Table | None:
    """Return a table, or None for a view whose tables have changed."""
    try:
        columns = connection.execute("SELECT name, type FROM pragma_table_xinfo(?)", [name])
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            return None
        raise
    foreign_keys = connection.execute(
        'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', [name]
    )
    references = {
        column: (names.get(fold_case(table), table), key or "")
        for column, table, key in foreign_keys
    }
    return Table(
        name=name,
        columns=tuple(Column(name=n, type=t, references=references.get(n)) for n, t in columns),
        is_view=type == "view",
    )
