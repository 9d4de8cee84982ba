"""SQL handed straight to the driver of the database.

Django puts several layers around every cursor, and spells each statement anew for SQLite: of a
short query that is most of the time. What the layers are for is kept: a connection that is
made, and made again, errors of Django's own, and a word to whoever listens to the queries.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.sqlite3.base import FORMAT_QMARK_REGEX

Values = Sequence[Any]


def fetch(ours: BaseDatabaseWrapper, sql: str, values: Values) -> list[Values]:
    """The rows that a statement gives."""
    cursor, sql = _open_cursor(ours, sql)
    with ours.wrap_database_errors:
        cursor.execute(sql, values)
        return cursor.fetchall()


def execute(ours: BaseDatabaseWrapper, sql: str, values: Values) -> None:
    cursor, sql = _open_cursor(ours, sql)
    with ours.wrap_database_errors:
        cursor.execute(sql, values)


def execute_many(ours: BaseDatabaseWrapper, sql: str, rows: Sequence[Values]) -> None:
    """The same statement for each of these rows."""
    cursor, sql = _open_cursor(ours, sql)
    with ours.wrap_database_errors:
        cursor.executemany(sql, rows)


def _open_cursor(ours: BaseDatabaseWrapper, sql: str) -> tuple[Any, str]:
    """A cursor, and the statement as it takes it."""
    if ours.queries_logged or ours.execute_wrappers:  # somebody listens, as a test does
        return ours.cursor(), sql
    ours.close_if_health_check_failed()
    ours.ensure_connection()
    ours.validate_no_broken_transaction()
    with ours.wrap_database_errors:
        cursor = ours.connection.cursor()
    return cursor, _to_qmark(sql) if ours.vendor == "sqlite" else sql


def adapt_datetime(ours: BaseDatabaseWrapper, time: datetime) -> Any:
    """A time as the driver takes it: SQLite keeps text, and nearly all of ours is UTC."""
    if ours.vendor == "sqlite" and time.tzinfo is UTC:
        return str(time.replace(tzinfo=None))
    return ours.ops.adapt_datetimefield_value(time)


def adapt_json(ours: BaseDatabaseWrapper, value: Mapping[str, Any]) -> Any:
    """JSON as the driver takes it."""
    if ours.vendor == "sqlite":
        with suppress(TypeError):  # it takes no half characters and no huge numbers
            return orjson.dumps(value).decode()
    return ours.ops.adapt_json_value(value, None)


@lru_cache(maxsize=1024)
def _to_qmark(sql: str) -> str:
    """As Django's cursor would spell it each time: SQLite has no other blanks."""
    return FORMAT_QMARK_REGEX.sub("?", sql).replace("%%", "%")
