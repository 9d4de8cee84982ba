"""Fast writes of known columns, for which the ORM would build the same SQL for every row.

`docs/decisions/orm-bypass.md` has the figures.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, Field, JSONField, Model, TextField
from django.db.models.expressions import BaseExpression, DatabaseDefault
from django.db.models.sql import Query

from .raw_cursor import execute, execute_many, fetch

TEXT_FIELDS = {CharField, TextField}
# Drivers take these as they are, unless the column is JSON.
PLAIN_TYPES = {int, float, bool, type(None)}


@dataclass(frozen=True, slots=True)
class Increment:
    """Adds to a column; null counts as zero."""

    amount: float

    def __add__(self, other: "Increment") -> "Increment":
        return Increment(self.amount + other.amount)


def update(model: type[Model], changes: Mapping[str, Any], **filters: Any) -> int:
    """Update the rows with these values and return how many there were."""
    wrapper = _connection()
    values = [*changes.values(), *filters.values()]
    changed = tuple((name, isinstance(value, Increment)) for name, value in changes.items())
    sql, fields = _update_statement(model, changed, tuple(filters))
    prepared = [_db_value(*pair, wrapper) for pair in zip(fields, values, strict=True)]
    return execute(wrapper, sql, prepared)


def insert(row: Model) -> None:
    """Insert a new row and set its ID; no signals are sent.

    A value can be an expression; columns with a database default need a value.
    """
    model = type(row)
    wrapper = _connection()
    sql_values: list[str] = []
    params: list[Any] = []
    for field in _insert_fields(model):
        value = _field_value(field, row)
        if isinstance(value, DatabaseDefault):
            raise ValueError(f"{model.__name__}.{field.attname} has no value.")
        if isinstance(value, BaseExpression):
            compiler = Query(model).get_compiler(connection=wrapper)
            sql_value, own_params = compiler.compile(value)
            sql_values.append(sql_value)
            params += own_params
        else:
            sql_values.append("%s")
            params.append(_db_value(field, value, wrapper))
    sql = _insert_statement(model, tuple(sql_values), True)
    [[row.pk]] = fetch(wrapper, sql, params)
    row._state.adding = False
    row._state.db = wrapper.alias


def insert_many(model: type[Model], rows: Iterable[Model]) -> None:
    """Insert new rows whose IDs aren't needed; values can't be expressions."""
    fields = _insert_fields(model)
    wrapper = _connection()
    sql = _insert_statement(model, ("%s",) * len(fields), False)
    prepared_rows = [
        [_db_value(field, _field_value(field, row), wrapper) for field in fields]
        for row in rows
    ]
    execute_many(wrapper, sql, prepared_rows)


def _connection() -> BaseDatabaseWrapper:
    """Return this thread's connection, looked up once."""
    return connections[DEFAULT_DB_ALIAS]


def _db_value(field: Field, value: Any, wrapper: BaseDatabaseWrapper) -> Any:
    is_plain = type(value) in PLAIN_TYPES and not isinstance(field, JSONField)
    if is_plain or (type(value) is str and type(field) in TEXT_FIELDS):
        return value  # nearly all values need no conversion
    value = value.amount if isinstance(value, Increment) else value
    return field.get_db_prep_save(value, wrapper)


def _field_value(field: Field, row: Model) -> Any:
    """Return a new row's value; times can be set at this moment."""
    is_plain = type(field).pre_save is Field.pre_save
    return vars(row)[field.attname] if is_plain else field.pre_save(row, add=True)


@cache
def _insert_fields(model: type[Model]) -> list[Field]:
    return [field for field in model._meta.concrete_fields if not field.primary_key]


@lru_cache(maxsize=256)
def _insert_statement(model: type[Model], values: tuple[str, ...], returns_id: bool) -> str:
    columns = ", ".join(map(_column, _insert_fields(model)))
    sql = f"INSERT INTO {_table(model)} ({columns}) VALUES ({', '.join(values)})"
    return f"{sql} RETURNING {_column(concrete_field(model, 'id'))}" if returns_id else sql


@lru_cache(maxsize=256)
def _update_statement(
    model: type[Model], changed: tuple[tuple[str, bool], ...], filters: tuple[str, ...]
) -> tuple[str, list[Field]]:
    """Return the UPDATE statement, and the fields of its values."""
    fields = [concrete_field(model, name) for name in (*dict(changed), *filters)]
    columns = [_column(field) for field in fields]
    assignments = []
    for column, (_, is_increment) in zip(columns, changed, strict=False):
        current_value = f"COALESCE({column}, 0) + " if is_increment else ""
        assignments.append(f"{column} = {current_value}%s")
    conditions = [f"{column} = %s" for column in columns[len(assignments) :]]
    sql = (
        f"UPDATE {_table(model)} SET {', '.join(assignments)} WHERE {' AND '.join(conditions)}"
    )
    return sql, fields


def concrete_field(model: type[Model], name: str) -> Field:
    """Return a field that has a column, not a reverse relation."""
    field = model._meta.get_field(name)
    if not isinstance(field, Field):
        raise FieldDoesNotExist(f"{model._meta.label} has no column for {name}.")
    return field


@cache
def _column(field: Field) -> str:
    return connection.ops.quote_name(str(field.column))


@cache
def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
