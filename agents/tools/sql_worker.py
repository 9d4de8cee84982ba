"""The second wall: one query in a process of its own, confined, and killed when it is late.

It is started by its path, without site-packages and with an empty environment, so that
whatever a query might break out to holds no secret and no other database. It reads one JSON
request from standard input and writes one JSON reply.
"""

import json
import math
import os
import resource
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

MAX_CELL = 2_000
MAX_OUTPUT = 250_000
MEMORY = 512 * 2**20

LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 250,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
# What another try may cure; everything else is cured by another query.
PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
}
SENTENCES = {
    sqlite3.SQLITE_AUTH: "This query reads more than the tables that this tool may read.",
    sqlite3.SQLITE_TOOBIG: "A value in this query is larger than 1 MB: leave that column out.",
    sqlite3.SQLITE_NOMEM: "This query needs too much memory: ask for fewer rows.",
    sqlite3.SQLITE_BUSY: "The database is being written to.",
    sqlite3.SQLITE_CANTOPEN: "The database file cannot be opened.",
    sqlite3.SQLITE_NOTADB: "The database file is not an SQLite database.",
}


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    _confine(request["seconds"])
    try:
        reply = _answer(request)
    except (sqlite3.Error, sqlite3.Warning) as error:
        reply = _refusal(error)
    except MemoryError:
        reply = {"error": SENTENCES[sqlite3.SQLITE_NOMEM], "mendable": True}
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode())


def _confine(seconds: float) -> None:
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # what came by accident, if anything
    # Room for the small index file that readers of a write-ahead log share; no more.
    limits = {
        resource.RLIMIT_FSIZE: 2**16,
        resource.RLIMIT_NOFILE: 16,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: math.ceil(seconds) + 1,
    }
    if sys.platform == "linux":
        limits[resource.RLIMIT_AS] = MEMORY
    for kind, limit in limits.items():
        _, most = resource.getrlimit(kind)
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (limit, limit))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    with closing(sqlite3.connect(request["uri"], uri=True, timeout=1)) as connection:
        _guard(connection, request)
        cursor = connection.execute(request["sql"])
        rows, truncated = _first(cursor, request["max_rows"])
        columns = [_cell(column[0]) for column in cursor.description or ()]
        return {"columns": columns, "rows": rows, "truncated": truncated}


def _guard(connection: sqlite3.Connection, request: dict[str, Any]) -> None:
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA hard_heap_limit = {MEMORY // 2}")
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    connection.text_factory = lambda text: text.decode(errors="replace")
    connection.set_authorizer(_Authorizer(request))


class _Authorizer:
    """Says yes to reading the listed tables and calling the listed functions."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.tables = {name.lower() for name in request["tables"]}
        self.functions = set(request["functions"])
        self.ctes = set(request["ctes"])

    def __call__(
        self, action: int, what: str | None, of: str | None, _: str | None, within: str | None
    ) -> int:
        match action:
            case sqlite3.SQLITE_SELECT:
                allowed = True
            case sqlite3.SQLITE_READ:
                allowed = self._may_read((what or "").lower(), of, (within or "").lower())
            case sqlite3.SQLITE_FUNCTION:
                allowed = (of or "").lower() in self.functions
            case _:
                allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str | None, view: str) -> bool:
        # A view may show what its tables hide. A CTE comes by name when no column is used.
        return (
            table in self.tables or view in self.tables or (not column and table in self.ctes)
        )


def _first(cursor: sqlite3.Cursor, count: int) -> tuple[list[list[Any]], bool]:
    rows: list[list[Any]] = []
    room = MAX_OUTPUT
    for row in _shown(cursor):
        room -= sum(len(str(cell)) + 4 for cell in row)
        if len(rows) == count or (rows and room < 0):
            return rows, True
        rows.append(row)
    return rows, False


def _shown(cursor: sqlite3.Cursor) -> Iterator[list[Any]]:
    for row in cursor:
        yield [_cell(value) for value in row]


def _cell(value: Any) -> Any:
    match value:
        case bytes():
            return f"<{len(value)} bytes>"
        case float() if not math.isfinite(value):
            return None
        case str() if len(value) > MAX_CELL:
            return f"{value[:MAX_CELL]}… ({len(value):,} characters)"
    return value


def _refusal(error: Exception) -> dict[str, Any]:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    text = str(error)
    if text.startswith(("no such table", "not authorized")) or "prohibited" in text:
        code = sqlite3.SQLITE_AUTH
    sentence = SENTENCES.get(code, f"SQLite says: {text}.")
    return {"error": sentence, "mendable": code not in PASSING}


if __name__ == "__main__":
    main()
