"""What is alike for every test is made once, where Django would make it for each."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch

from django.core.management.color import no_style
from django.db import connection
from django.test import TransactionTestCase
from servestatic.middleware import ServeStaticMiddleware

# They follow from the models, not from a test: `flush` would write all of them anew.
RIGHTS = {"auth_permission", "django_content_type"}


@contextmanager
def made() -> Iterator[None]:
    static = patch.object(ServeStaticMiddleware, "add_files_from_finders", _static_files())
    with patch.object(TransactionTestCase, "_fixture_teardown", _empty), static:
        yield


def _empty(case: TransactionTestCase) -> None:
    connection.ops.execute_sql_flush(_emptying())


@cache
def _emptying() -> list[str]:
    tables = connection.introspection.django_table_names(
        only_existing=True, include_views=False
    )
    return connection.ops.sql_flush(no_style(), [t for t in tables if t not in RIGHTS])


def _static_files():
    """Each client has a middleware of its own, which would look for them on the disk again."""
    look, found = ServeStaticMiddleware.add_files_from_finders, {}

    def remember(middleware: ServeStaticMiddleware) -> None:
        if not found:
            look(middleware)
            found.update(middleware.files)
        middleware.files |= found

    return remember
