"""Django internals that the fast database paths depend on.

A Django upgrade that changes any of them fails here first. `docs/decisions/orm-bypass.md` says
what to do then.
"""

import inspect

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.operations import BaseDatabaseOperations
from django.db.backends.sqlite3.base import SQLiteCursorWrapper
from django.db.models import Field, QuerySet
from django.db.models.base import ModelState
from django.db.models.functions import Length
from django.db.models.query import FlatValuesListIterable, ModelIterable, ValuesListIterable

from agents.db.raw_cursor import _to_qmark
from agents.models import Run

pytestmark = pytest.mark.django_db


def compiler_of(queryset):
    compiler = queryset.query.get_compiler(using=queryset.db)
    sql, params = compiler.as_sql()
    assert isinstance(sql, str)
    assert isinstance(params, list | tuple)
    return compiler


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (BaseDatabaseWrapper, "close_if_health_check_failed", ["self"]),
        (BaseDatabaseWrapper, "validate_no_broken_transaction", ["self"]),
        (BaseDatabaseOperations, "adapt_datetimefield_value", ["self", "value"]),
        (BaseDatabaseOperations, "adapt_json_value", ["self", "value", "encoder"]),
        (BaseDatabaseOperations, "quote_name", ["self", "name"]),
        (Field, "get_db_prep_save", ["self", "value", "connection"]),
    ],
)
def test_internal_methods_have_the_expected_parameters(owner, name, parameters):
    assert list(inspect.signature(getattr(owner, name)).parameters) == parameters


def test_a_connection_has_execute_wrappers_and_wraps_errors():
    connection.ensure_connection()

    assert connection.queries_logged in (True, False)
    assert list(connection.execute_wrappers) == []
    assert hasattr(connection.connection, "cursor")
    with connection.wrap_database_errors:
        pass


@pytest.mark.parametrize(
    "sql", ["SELECT 1", "a = %s AND b LIKE 'x%%'", "a IN (%s, %s) AND b = '%%s'"]
)
def test_placeholders_match_djangos_sqlite_cursor(sql):
    theirs = SQLiteCursorWrapper.convert_query(None, sql)

    assert _to_qmark(sql) == theirs


def test_a_compiler_lists_the_columns_of_a_model():
    queryset = Run.objects.select_related("user").annotate(length=Length("query"))
    compiler = compiler_of(queryset)
    info, [related] = compiler.klass_info, compiler.klass_info["related_klass_infos"]
    names = [compiler.select[at][0].target.attname for at in info["select_fields"]]

    assert info["model"] is Run
    assert names == [field.attname for field in Run._meta.concrete_fields]
    assert compiler.annotation_col_map == {"length": len(names)}
    assert related["model"] is get_user_model()
    assert related["select_fields"][0] == len(names) + 1

    run, user = Run(), get_user_model()(pk=7)
    related["local_setter"](run, user)
    related["remote_setter"](user, run)
    assert (run.user, run.user_id) == (user, None)  # the column is read with the others


def test_a_compiler_lists_the_value_converters():
    compiler = compiler_of(Run.objects.values_list("query", "history"))
    columns = [column for column, *_ in compiler.select[: compiler.col_count]]
    [(at, (converters, column))] = compiler.get_converters(columns).items()

    assert (at, column) == (1, columns[1])
    assert converters[-1]('{"a": 1}', column, connection) == {"a": 1}


def test_a_queryset_has_its_iterable_class():
    rows = Run.objects.all()

    assert rows._iterable_class is ModelIterable
    assert rows.values_list("pk")._iterable_class is ValuesListIterable
    assert rows.values_list("pk", flat=True)._iterable_class is FlatValuesListIterable
    assert isinstance(rows, QuerySet)


def test_an_instance_has_only_its_columns_and_state():
    made = Run.objects.create(topic="chat.1", query="6 * 7")
    read = Run.objects.get(pk=made.pk)

    assert set(vars(read)) == {"_state", *(f.attname for f in Run._meta.concrete_fields)}
    assert vars(read._state) == {"db": "default", "adding": False}
    assert (ModelState.db, ModelState.adding) == (None, True)
