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

from agents.engine.sentences import Sentence, pack

Values = Sequence[Any]


def fetch(wrapper: BaseDatabaseWrapper, sql: str, values: Values) -> list[Values]:
    """Return the rows of a statement."""
    with wrapper.wrap_database_errors:
        cursor, sql = _open_cursor(wrapper, sql)
        cursor.execute(sql, values)
        return cursor.fetchall()


def execute(wrapper: BaseDatabaseWrapper, sql: str, values: Values) -> int:
    """Execute a statement and return how many rows it changed."""
    with wrapper.wrap_database_errors:
        cursor, sql = _open_cursor(wrapper, sql)
        cursor.execute(sql, values)
    count: int = cursor.rowcount
    return count


def execute_many(wrapper: BaseDatabaseWrapper, sql: str, rows: Sequence[Values]) -> None:
    """Execute a statement for each of these rows."""
    with wrapper.wrap_database_errors:
        cursor, sql = _open_cursor(wrapper, sql)
        cursor.executemany(sql, rows)


def _open_cursor(wrapper: BaseDatabaseWrapper, sql: str) -> tuple[Any, str]:
    """Return a cursor and the statement in its syntax."""
    if wrapper.queries_logged or wrapper.execute_wrappers:  # queries are logged, e.g. by a test
        return wrapper.cursor(), sql
    wrapper.close_if_health_check_failed()
    wrapper.ensure_connection()
    wrapper.validate_no_broken_transaction()
    cursor = wrapper.connection.cursor()
    return cursor, _to_qmark(sql) if wrapper.vendor == "sqlite" else sql


def adapt_datetime(wrapper: BaseDatabaseWrapper, time: datetime) -> Any:
    """Return a time for the driver: SQLite stores text, and nearly all of ours is UTC."""
    if wrapper.vendor == "sqlite" and time.tzinfo is UTC:
        return str(time.replace(tzinfo=None))
    return wrapper.ops.adapt_datetimefield_value(time)


def adapt_json(wrapper: BaseDatabaseWrapper, value: Mapping[str, Any]) -> Any:
    """Return JSON for the driver."""
    if wrapper.vendor == "sqlite":
        with suppress(TypeError):  # rejects lone surrogates and huge numbers
            return orjson.dumps(value, _pack_subclass, orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    return wrapper.ops.adapt_json_value(pack(value), None)


def _pack_subclass(value: Any) -> Any:
    return pack(value) if isinstance(value, Sentence) else str(value)


@lru_cache(maxsize=1024)
def _to_qmark(sql: str) -> str:
    """Convert placeholders for SQLite, as Django's cursor does each time."""
    return FORMAT_QMARK_REGEX.sub("?", sql).replace("%%", "%")
