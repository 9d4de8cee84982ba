"""The second layer: one query in its own confined process, killed when it is late.

It is started by path, without site-packages and with an empty environment, so that an escaping
query finds no secret and no other database. It reads one JSON request from standard input and
writes one JSON reply.
"""

import json
import math
import os
import re
import secrets
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from agents.engine.sentences import Sentence as _
from agents.engine.sentences import pack

MAX_CELL_CHARS = 2_000
MAX_OUTPUT_CHARS = 250_000
MEMORY_BYTES = 512 * 2**20

ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
# SQLite stores a view's text from its name on, regardless of what preceded it.
CREATE_VIEW = re.compile(
    r"""CREATE VIEW ("(?:[^"]|"")*"|`(?:[^`]|``)*`|'(?:[^']|'')*'|\[[^\]]*\]|[\w$]+)""",
    re.ASCII,
)

SQLITE_LIMITS = {
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
# Errors that a retry may fix; all others need another query.
TRANSIENT_ERRORS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_NOTADB,
}
ERROR_MESSAGES = {
    sqlite3.SQLITE_AUTH: _("The query reads a table that isn't available to this tool."),
    sqlite3.SQLITE_TOOBIG: _(
        "A value in the result is larger than 1 MB. Leave out that column."
    ),
    sqlite3.SQLITE_NOMEM: _("The query needs too much memory. Select fewer rows."),
    sqlite3.SQLITE_BUSY: _("The database is locked by a write. Try again in a moment."),
    sqlite3.SQLITE_CANTOPEN: _("The database file can't be opened."),
    # Of readers: a file that they share can't be created.
    sqlite3.SQLITE_READONLY: _("The database file can't be opened."),
    sqlite3.SQLITE_NOTADB: _("The file isn't an SQLite database."),
}


def fold_case(name: str) -> str:
    """Fold a name like SQLite, where only A to Z have two cases.

    `str.lower` would map KELVIN SIGN to k and Ä to ä: names of other tables.
    """
    return name.translate(ASCII_LOWER)


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    try:
        reply = _open_and_run(request)
        # A view that SQLite merges into the query, with no column used, appears as a read of
        # its table by the query itself. Kept separate, it appears as a view.
        if "error" in reply and reply["error"] == ERROR_MESSAGES[sqlite3.SQLITE_AUTH]:
            reply = _open_and_run(request, is_apart=True)
    except (sqlite3.Error, sqlite3.Warning) as error:
        reply = _error_reply(error)
    except MemoryError:
        reply = {"error": ERROR_MESSAGES[sqlite3.SQLITE_NOMEM], "mendable": True}
    if "error" in reply:
        reply["error"] = pack(reply["error"])
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode())


def _open_and_run(request: dict[str, Any], *, is_apart: bool = False) -> dict[str, Any]:
    """Run the query, also on a file with a write-ahead log that nobody has open.

    Its readers share two files that this process isn't allowed to create. Without them nobody
    writes, so it can be read as a file that doesn't change.
    """
    reply = _run_query(request, is_apart=is_apart)
    is_closed = not os.path.exists(request["log"])
    if is_closed and reply.get("error") == ERROR_MESSAGES[sqlite3.SQLITE_CANTOPEN]:
        alone = {**request, "uri": f"{request['uri']}&immutable=1"}
        reply = _run_query(alone, is_apart=is_apart)
    return reply


def _run_query(request: dict[str, Any], *, is_apart: bool = False) -> dict[str, Any]:
    connecting = sqlite3.connect(request["uri"], uri=True, timeout=1, isolation_level=None)
    with closing(connecting) as connection:
        try:
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA hard_heap_limit = {MEMORY_BYTES // 2}")
            # One transaction for both, so that the query sees the listed tables.
            connection.execute("BEGIN")
            authorizer = _Authorizer(connection, request, is_apart)
            connection.execute("PRAGMA query_only = ON")
            for limit, value in SQLITE_LIMITS.items():
                connection.setlimit(limit, value)
            connection.text_factory = lambda text: text.decode(errors="replace")
            connection.set_authorizer(authorizer)
            cursor = connection.execute(request["sql"])
            rows: list[list[Any]] = []
            truncated = False
            chars_left = MAX_OUTPUT_CHARS
            for values in cursor:
                row = [_format_cell(value) for value in values]
                chars_left -= sum(len(str(cell)) + 4 for cell in row)
                if len(rows) == request["max_rows"] or (rows and chars_left < 0):
                    truncated = True
                    break
                rows.append(row)
        except sqlite3.DatabaseError as error:
            return _error_reply(error)
        columns = [_format_cell(column[0]) for column in cursor.description or ()]
        return {"columns": columns, "rows": rows, "truncated": truncated}


class _Authorizer:
    """Allows reading the listed tables and calling the listed functions.

    It trusts neither the parser nor names in the query: the database says which tables exist,
    and views have random names.
    """

    def __init__(
        self, connection: sqlite3.Connection, request: dict[str, Any], is_apart: bool
    ) -> None:
        self.tables = {fold_case(name) for name in request["tables"]}
        # Tables of which only some columns can be read.
        self.columns = {
            fold_case(name): {fold_case(column) for column in columns}
            for name, columns in request.get("columns", {}).items()
        }
        self.functions = set(request["functions"])
        # Everything a query could read by name: tables, views, and table-valued modules.
        names = connection.execute(
            "SELECT name FROM pragma_table_list UNION SELECT name FROM pragma_module_list"
        )
        self.existing = {fold_case(name) for (name,) in names}
        views = dict(
            connection.execute(
                "SELECT name, sql FROM main.sqlite_schema WHERE type = 'view'"
            ).fetchall()
        )
        self.hidden = {fold_case(name) for name in views} - self.tables
        listed = {name: sql for name, sql in views.items() if fold_case(name) in self.tables}
        self.views = frozenset(
            _shadow_views(connection, listed, request.get("columns", {}), is_apart)
        )

    def __call__(
        self, action: int, table: str | None, name: str | None, _: str | None, view: str | None
    ) -> int:
        match action:
            case sqlite3.SQLITE_SELECT:
                # A hidden view over a listed table is only visible here.
                allowed = fold_case(view or "") not in self.hidden
            case sqlite3.SQLITE_READ:
                allowed = self._may_read(fold_case(table or ""), name, view)
            case sqlite3.SQLITE_FUNCTION:
                allowed = fold_case(name or "") in self.functions
            case _:
                allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str | None, view: str | None) -> bool:
        # A view may show what its tables hide. SQLite also reports a CTE's name as the view,
        # which the query chooses: only a name that no query can know is a view's.
        if view in self.views or table in self.views:
            return True
        if table in self.tables:
            readable = self.columns.get(table)
            return readable is None or not column or fold_case(column) in readable
        # A part of the query appears by its name if none of its columns is used.
        exists = table in self.existing or table.startswith(("sqlite_", "pragma_"))
        return not column and not exists


def _shadow_views(
    connection: sqlite3.Connection,
    views: Mapping[str, str],
    columns: Mapping[str, list[str]],
    is_apart: bool,
) -> Iterator[str]:
    """Give each view a random name, and create a view of that under its own name.

    Yields the random names. Both disappear with the connection. What a view reads is then
    reported within the random name.
    """
    for name, sql in views.items():
        if not (beginning := CREATE_VIEW.match(sql or "")):
            continue  # unusual syntax, so it can't be read
        hidden_name = f"view_{secrets.token_hex(16)}"
        connection.execute(f"CREATE TEMP VIEW {hidden_name} {sql[beginning.end() :]}")
        visible_columns = ", ".join(map(_quote, columns[name])) if name in columns else "*"
        selection = f"SELECT {visible_columns} FROM {hidden_name}"
        materialized = f"WITH apart AS MATERIALIZED ({selection}) SELECT * FROM apart"
        definition = materialized if is_apart else selection
        connection.execute(f"CREATE TEMP VIEW {_quote(name)} AS {definition}")
        yield hidden_name


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _format_cell(value: Any) -> Any:
    match value:
        case bytes():
            return f"<{len(value)} bytes>"
        case float() if not math.isfinite(value):
            return None
        case str() if len(value) > MAX_CELL_CHARS:
            return f"{value[:MAX_CELL_CHARS]}… ({len(value):,} characters)"
    return value


def _error_reply(error: Exception) -> dict[str, Any]:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    text = str(error)
    if text.startswith(("no such table", "not authorized")) or "prohibited" in text:
        code = sqlite3.SQLITE_AUTH
    sentence = ERROR_MESSAGES.get(code, _("SQLite error: %(words)s.", words=text))
    if text.startswith("no such column"):
        sentence = _(
            "%(sentence)s Put text in single quotes, and use the column names "
            "from the tool's description.",
            sentence=sentence,
        )
    return {"error": sentence, "mendable": code not in TRANSIENT_ERRORS}


if __name__ == "__main__":
    main()
