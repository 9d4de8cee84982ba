"""Plain values into known columns: the ORM would work out the same statement for every row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, Expression, Field, Model, TextField
from django.db.models.sql import Query

from .driver import execute, execute_many, fetch

TEXTS = {CharField, TextField}


@dataclass(frozen=True, slots=True)
class More:
    """So much more than there is; of what nobody knew yet, so much."""

    amount: float

    def __add__(self, other: "More") -> "More":
        return More(self.amount + other.amount)


def insert(model: type[Model], rows: Iterable[Model]) -> None:
    """New rows, for whose numbers nobody waits."""
    fields, ours = _fields(model), _ours()
    blanks = ", ".join(["%s"] * len(fields))
    values = [[_value(f, getattr(row, f.attname), ours) for f in fields] for row in rows]
    execute_many(ours, f"{_insertion(model)} ({blanks})", values)


def add(row: Model) -> None:
    """A new row, which is given its number; values that the database finds are left to it."""
    model, ours = type(row), _ours()
    values = [_written(f, f.pre_save(row, add=True), ours) for f in _fields(model)]
    blanks = ", ".join(sql for sql, _ in values)
    sql = f"{_insertion(model)} ({blanks}) RETURNING id"
    [[row.pk]] = fetch(ours, sql, [param for _, params in values for param in params])
    row._state.adding, row._state.db = False, ours.alias


def update(model: type[Model], changes: Mapping[str, Any], **which: Any) -> None:
    """Change the rows whose columns have these values."""
    ours, values = _ours(), [*changes.values(), *which.values()]
    changed = tuple((name, isinstance(value, More)) for name, value in changes.items())
    sql, fields = _change(model, changed, tuple(which))
    execute(ours, sql, [_value(*each, ours) for each in zip(fields, values, strict=True)])


def _ours() -> BaseDatabaseWrapper:
    """The connection of this thread, looked up once and not for each value."""
    return connections[DEFAULT_DB_ALIAS]


def _written(field: Field, value: Any, ours: BaseDatabaseWrapper) -> tuple[str, Iterable[Any]]:
    if not isinstance(value, Expression):
        return "%s", [_value(field, value, ours)]
    return Query(field.model).get_compiler(connection=ours).compile(value)


def _value(field: Field, value: Any, ours: BaseDatabaseWrapper) -> Any:
    if type(value) is str and type(field) in TEXTS:
        return value  # as nearly all are: nothing is to be done to it
    value = value.amount if isinstance(value, More) else value
    return field.get_db_prep_save(value, ours)


@lru_cache(maxsize=256)
def _change(
    model: type[Model], changed: tuple[tuple[str, bool], ...], which: tuple[str, ...]
) -> tuple[str, list[Field]]:
    """The statement that changes these columns, and the fields whose values it wants."""
    fields = [model._meta.get_field(name) for name in (*dict(changed), *which)]
    columns = [_column(field) for field in fields]
    put = [_assignment(columns[at], is_more) for at, (_, is_more) in enumerate(changed)]
    found = [f"{column} = %s" for column in columns[len(put) :]]
    sql = f"UPDATE {_table(model)} SET {', '.join(put)} WHERE {' AND '.join(found)}"
    return sql, fields


def _assignment(column: str, is_more: bool) -> str:
    before = f"COALESCE({column}, 0) + " if is_more else ""
    return f"{column} = {before}%s"


@cache
def _insertion(model: type[Model]) -> str:
    columns = ", ".join(map(_column, _fields(model)))
    return f"INSERT INTO {_table(model)} ({columns}) VALUES"


@cache
def _fields(model: type[Model]) -> list[Field]:
    return [field for field in model._meta.concrete_fields if not field.primary_key]


@cache
def _column(field: Field) -> str:
    return connection.ops.quote_name(field.column)


@cache
def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
