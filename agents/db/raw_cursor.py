"""SQL passed directly to the database driver.

Django puts several layers around every cursor and rewrites each statement for SQLite, which is
most of the time of a short query. What the layers do is preserved: connecting and reconnecting,
Django's exceptions, and query logging.
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
    """Return the rows of a statement."""
    with ours.wrap_database_errors:
        cursor, sql = _open_cursor(ours, sql)
        cursor.execute(sql, values)
        return cursor.fetchall()


def execute(ours: BaseDatabaseWrapper, sql: str, values: Values) -> int:
    """Execute a statement and return how many rows it changed."""
    with ours.wrap_database_errors:
        cursor, sql = _open_cursor(ours, sql)
        cursor.execute(sql, values)
    count: int = cursor.rowcount
    return count


def execute_many(ours: BaseDatabaseWrapper, sql: str, rows: Sequence[Values]) -> None:
    """Execute a statement for each of these rows."""
    with ours.wrap_database_errors:
        cursor, sql = _open_cursor(ours, sql)
        cursor.executemany(sql, rows)


def _open_cursor(ours: BaseDatabaseWrapper, sql: str) -> tuple[Any, str]:
    """Return a cursor and the statement in its syntax."""
    if ours.queries_logged or ours.execute_wrappers:  # queries are logged, e.g. by a test
        return ours.cursor(), sql
    ours.close_if_health_check_failed()
    ours.ensure_connection()
    ours.validate_no_broken_transaction()
    cursor = ours.connection.cursor()
    return cursor, _to_qmark(sql) if ours.vendor == "sqlite" else sql


def adapt_datetime(ours: BaseDatabaseWrapper, time: datetime) -> Any:
    """Return a time for the driver: SQLite stores text, and nearly all of ours is UTC."""
    if ours.vendor == "sqlite" and time.tzinfo is UTC:
        return str(time.replace(tzinfo=None))
    return ours.ops.adapt_datetimefield_value(time)


def adapt_json(ours: BaseDatabaseWrapper, value: Mapping[str, Any]) -> Any:
    """Return JSON for the driver."""
    if ours.vendor == "sqlite":
        with suppress(TypeError):  # rejects lone surrogates and huge numbers
            return orjson.dumps(value).decode()
    return ours.ops.adapt_json_value(value, None)


@lru_cache(maxsize=1024)
def _to_qmark(sql: str) -> str:
    """Convert placeholders for SQLite, as Django's cursor does each time."""
    return FORMAT_QMARK_REGEX.sub("?", sql).replace("%%", "%")
