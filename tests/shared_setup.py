"""Creates what all tests share once instead of for each test, as Django would."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import compress
from unittest.mock import patch

from django.db import connection
from django.test import TransactionTestCase, override_settings
from servestatic.middleware import ServeStaticMiddleware

from agents.db.row_cache import RowCache

# They derive from the models, not from a test: `flush` would rewrite all of them.
RIGHTS = {"auth_permission", "django_content_type"}
SEARCH_INDEX = "agents_chunk_index"  # has no model, so Django doesn't list it
# A secure one takes longer than the rest of a test.
HASHER = "django.contrib.auth.hashers.MD5PasswordHasher"


@contextmanager
def apply() -> Iterator[None]:
    # A test saves its settings itself, and none reads them again because of the time.
    for rows in RowCache.all:
        rows.reset()
    RowCache.max_age = float("inf")
    static = patch.object(ServeStaticMiddleware, "add_files_from_finders", _static_files())
    rows = patch.object(TransactionTestCase, "_fixture_teardown", _empty)
    # A new connection reads the whole schema again.
    kept = patch.object(TransactionTestCase, "_should_reload_connections", return_value=False)
    with static, rows, kept, override_settings(PASSWORD_HASHERS=[HASHER]):
        yield


def _empty(case: TransactionTestCase) -> None:
    """Delete row by row: for PostgreSQL, truncating a table means a new file."""
    # The database only deletes audit entries that are truncated.
    log = ["UPDATE agents_audithead SET cut = number", "DELETE FROM agents_auditentry"]
    connection.ops.execute_sql_flush(log + [f"DELETE FROM {table}" for table in _filled()])


def _filled() -> list[str]:
    """Return the tables that have rows: of more than a hundred, a test fills a few."""
    with connection.cursor() as cursor:
        cursor.execute(_are_filled())
        return list(compress(_tables(), cursor.fetchone()))


@cache
def _are_filled() -> str:
    return "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {table})" for table in _tables())


@cache
def _tables() -> list[str]:
    ours = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return [connection.ops.quote_name(t) for t in (*ours, SEARCH_INDEX) if t not in RIGHTS]


def _static_files() -> Callable[[ServeStaticMiddleware], None]:
    """Cache the static files, which each client's middleware would search again."""
    look, found = ServeStaticMiddleware.add_files_from_finders, {}

    def remember(middleware: ServeStaticMiddleware) -> None:
        if not found:
            look(middleware)
            found.update(middleware.files)
        middleware.files |= found

    return remember
