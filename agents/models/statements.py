"""Plain values into known columns: the ORM would work out the same statement for every row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Field, Model


@dataclass(frozen=True, slots=True)
class More:
    """So much more than there is; of what nobody knew yet, so much."""

    amount: float

    def __add__(self, other: "More") -> "More":
        return More(self.amount + other.amount)


def insert(model: type[Model], rows: Iterable[Model]) -> None:
    """New rows, for whose numbers nobody waits."""
    fields = _fields(model)
    columns, blanks = ", ".join(map(_column, fields)), ", ".join(["%s"] * len(fields))
    values = [[_value(field, getattr(row, field.attname)) for field in fields] for row in rows]
    with connection.cursor() as cursor:
        sql = f"INSERT INTO {_table(model)} ({columns}) VALUES ({blanks})"
        cursor.executemany(sql, values)


def update(model: type[Model], changes: Mapping[str, Any], **which: Any) -> None:
    """Change the rows whose columns have these values."""
    changed = [(model._meta.get_field(name), value) for name, value in changes.items()]
    same = [(model._meta.get_field(name), value) for name, value in which.items()]
    put = ", ".join(_assignment(field, value) for field, value in changed)
    found = " AND ".join(f"{_column(field)} = %s" for field, _ in same)
    with connection.cursor() as cursor:
        sql = f"UPDATE {_table(model)} SET {put} WHERE {found}"
        cursor.execute(sql, [_value(field, value) for field, value in changed + same])


def _assignment(field: Field, value: Any) -> str:
    column = _column(field)
    before = f"COALESCE({column}, 0) + " if isinstance(value, More) else ""
    return f"{column} = {before}%s"


def _value(field: Field, value: Any) -> Any:
    value = value.amount if isinstance(value, More) else value
    return field.get_db_prep_save(value, connection)


@cache
def _fields(model: type[Model]) -> list[Field]:
    return [field for field in model._meta.concrete_fields if not field.primary_key]


def _column(field: Field) -> str:
    return connection.ops.quote_name(field.column)


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
