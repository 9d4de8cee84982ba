"""Fast updates of known columns, for which the ORM would build the same SQL for every row.

`docs/decisions/orm-bypass.md` has the figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, Field, Model, TextField

from .raw_cursor import execute

TEXT_FIELDS = {CharField, TextField}


@dataclass(frozen=True, slots=True)
class Increment:
    """Adds to a column; null counts as zero."""

    amount: float

    def __add__(self, other: "Increment") -> "Increment":
        return Increment(self.amount + other.amount)


def update(model: type[Model], changes: Mapping[str, Any], **which: Any) -> int:
    """Update the rows with these values and return how many there were."""
    ours, values = _connection(), [*changes.values(), *which.values()]
    changed = tuple((name, isinstance(value, Increment)) for name, value in changes.items())
    sql, fields = _update_statement(model, changed, tuple(which))
    prepared = [_db_value(*each, ours) for each in zip(fields, values, strict=True)]
    return execute(ours, sql, prepared)


def _connection() -> BaseDatabaseWrapper:
    """Return this thread's connection, looked up once."""
    return connections[DEFAULT_DB_ALIAS]


def _db_value(field: Field, value: Any, ours: BaseDatabaseWrapper) -> Any:
    if type(value) is str and type(field) in TEXT_FIELDS:
        return value  # nearly all values need no conversion
    value = value.amount if isinstance(value, Increment) else value
    return field.get_db_prep_save(value, ours)


@lru_cache(maxsize=256)
def _update_statement(
    model: type[Model], changed: tuple[tuple[str, bool], ...], which: tuple[str, ...]
) -> tuple[str, list[Field]]:
    """Return the UPDATE statement, and the fields of its values."""
    fields = [concrete_field(model, name) for name in (*dict(changed), *which)]
    columns = [_column(field) for field in fields]
    put = [_assignment(columns[at], is_more) for at, (_, is_more) in enumerate(changed)]
    found = [f"{column} = %s" for column in columns[len(put) :]]
    sql = f"UPDATE {_table(model)} SET {', '.join(put)} WHERE {' AND '.join(found)}"
    return sql, fields


def concrete_field(model: type[Model], name: str) -> Field:
    """Return a field that has a column, not a reverse relation."""
    field = model._meta.get_field(name)
    if not isinstance(field, Field):
        raise FieldDoesNotExist(f"{model._meta.label} has no column for {name}.")
    return field


def _assignment(column: str, is_more: bool) -> str:
    before = f"COALESCE({column}, 0) + " if is_more else ""
    return f"{column} = {before}%s"


@cache
def _column(field: Field) -> str:
    return connection.ops.quote_name(str(field.column))


@cache
def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
