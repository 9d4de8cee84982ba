"""Private copies of tables: a long change is prepared in them and then written at once.

SQLite has one writer. Temporary tables hide those of the same name from their own connection,
so what works on tables works on the copies, and nobody waits for it. Where the database locks
rows only, nothing is copied.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import connection, models, transaction

Result = TypeVar("Result")
Model = type[models.Model]

REFERENCE = re.compile(r' REFERENCES "\w+" \("\w+"\)(?: DEFERRABLE INITIALLY DEFERRED)?')
CREATED = re.compile(r"^CREATE (TABLE|INDEX|UNIQUE INDEX) ", re.IGNORECASE)


class ChangedMeanwhile(Exception):
    """Raised when somebody else has changed a table since it was copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadows:
    """The copied tables."""

    tables: Collection[Model]
    appended: Collection[Model] = ()  # whose rows never change
    unsaved: Collection[Model] = ()  # whose new rows aren't written back
    empty: Collection[Model] = ()  # of which only new rows are needed


def are_needed() -> bool:
    return connection.vendor == "sqlite"


@contextmanager
def shadowed(shadows: Shadows) -> Iterator[None]:
    """Let this thread read and write copies of the tables, which vanish afterwards."""
    names = [table._meta.db_table for table in shadows.tables]
    try:
        for table in shadows.tables:
            _copy(table._meta.db_table, is_empty=table in shadows.empty)
        yield
    finally:
        for name in names:
            for copied in (name, f"before_{name}", f"delta_{name}"):
                _execute(f'DROP TABLE IF EXISTS temp."{copied}"')


@contextmanager
def private_transaction() -> Iterator[None]:
    """Start a transaction without the lock of the database's writer."""
    connection.ensure_connection()
    mode = connection.transaction_mode  # type: ignore[attr-defined]
    connection.transaction_mode = "DEFERRED"  # type: ignore[attr-defined]
    try:
        with transaction.atomic():
            yield
    finally:
        connection.transaction_mode = mode  # type: ignore[attr-defined]


def prepare(shadows: Shadows, work: Callable[[], Result]) -> tuple[Result, list[Any]]:
    """Do the work in the copies; return its result, and what is to be done after a commit.

    `write` saves what it has changed.
    """
    saved = [table._meta.db_table for table in shadows.tables if table not in shadows.unsaved]
    for name in saved:
        _execute(f'CREATE TEMP TABLE "before_{name}" AS SELECT * FROM temp."{name}"')
    with private_transaction():
        earlier = list(connection.run_on_commit)
        result = work()
        later = connection.run_on_commit[len(earlier) :]
        connection.run_on_commit = earlier
    for name in saved:
        delta = f'SELECT * FROM temp."{name}" EXCEPT SELECT * FROM temp."before_{name}"'
        _execute(f'CREATE TEMP TABLE "delta_{name}" AS {delta}')
    return result, later


def write(shadows: Shadows) -> None:
    """Save what was prepared, in the caller's transaction; raise ChangedMeanwhile.

    From here on, this thread sees the tables themselves.
    """
    saved = [table for table in shadows.tables if table not in shadows.unsaved]
    for table in saved:
        name = table._meta.db_table
        if table in shadows.appended:
            counts = f'SELECT count(*), max("{table._meta.pk.column}") FROM'
            current = _rows(f'{counts} main."{name}"')
            is_changed = current != _rows(f'{counts} temp."before_{name}"')
        else:
            rows = f'SELECT * FROM main."{name}"'
            earlier = f'SELECT * FROM temp."before_{name}"'
            differing = (f"{rows} EXCEPT {earlier}", f"{earlier} EXCEPT {rows}")
            is_changed = any(_rows(f"SELECT 1 FROM ({sql}) LIMIT 1") for sql in differing)
        if is_changed:
            raise ChangedMeanwhile(name)
    for table in saved:
        name = table._meta.db_table
        key = f'"{table._meta.pk.column}"'
        keys_before = f'SELECT {key} FROM temp."before_{name}"'
        gone = f'{keys_before} EXCEPT SELECT {key} FROM temp."{name}"'
        changed = f'SELECT {key} FROM temp."delta_{name}"'
        # Deleted first: of two rows, one may get what was unique to the other.
        _execute(f'DELETE FROM main."{name}" WHERE {key} IN ({gone})')
        _execute(f'DELETE FROM main."{name}" WHERE {key} IN ({changed})')
        _execute(f'INSERT INTO main."{name}" SELECT * FROM temp."delta_{name}"')
    for table in shadows.tables:
        _execute(f'DROP TABLE temp."{table._meta.db_table}"')


def _copy(name: str, *, is_empty: bool) -> None:
    """Create an empty or filled copy with the same constraints, except references."""
    statements = (
        "SELECT sql FROM main.sqlite_master WHERE tbl_name = %s AND sql IS NOT NULL "
        "AND type IN ('table', 'index') ORDER BY type DESC"
    )
    with connection.cursor() as cursor:
        cursor.execute(statements, [name])
        created = [sql for (sql,) in cursor.fetchall()]
    for sql in created:
        _execute(CREATED.sub(r"CREATE \1 temp.", REFERENCE.sub("", sql)))
    if not is_empty:
        _execute(f'INSERT INTO temp."{name}" SELECT * FROM main."{name}"')
    # Numbers of deleted rows aren't used again.
    _execute(f"DELETE FROM temp.sqlite_sequence WHERE name = '{name}'")
    _execute(
        "INSERT INTO temp.sqlite_sequence (name, seq) "
        f"SELECT name, seq FROM main.sqlite_sequence WHERE name = '{name}'"
    )


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def _rows(sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()
