"""Queries that are asked all the time, put into SQL once.

Django works a query out anew each time, and that takes several times as long as to ask it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from inspect import signature
from typing import Any

from django.db import connections
from django.db.models import Expression, Model, QuerySet
from django.db.models.query import (
    FlatValuesListIterable,
    ModelIterable,
    ValuesListIterable,
    get_related_populators,
)

Row = Sequence[Any]


class Blank(Expression):
    """Stands for a number or a text that is filled in when the query is asked."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler, connection) -> tuple[str, list["Blank"]]:
        return "%s", [self]


class prepared:
    """Makes a function of plain values that gives a queryset one that gives its rows."""

    def __init__(self, make: Callable[..., QuerySet]) -> None:
        self.make = make
        self.names = tuple(signature(make).parameters)
        update_wrapper(self, make)

    def __call__(self, *values: Any) -> list[Any]:
        asked = self._asked
        filled = dict(zip(self.names, values, strict=True))
        params = [filled[b.name] if isinstance(b, Blank) else b for b in asked.params]
        connection = connections[asked.db]  # each thread has one of its own
        with connection.cursor() as cursor:
            cursor.execute(asked.sql, params)
            rows = cursor.fetchall()
        return [asked.read(_converted(row, asked.converters, connection)) for row in rows]

    @cached_property
    def _asked(self) -> "_Asked":
        made = self.make(*map(Blank, self.names))
        compiler = made.query.get_compiler(using=made.db)
        sql, params = compiler.as_sql()
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        converters = [(at, *how) for at, how in compiler.get_converters(columns).items()]
        read = READERS[made._iterable_class](compiler, made.db)
        return _Asked(made.db, sql, params, converters, read)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query as it is asked, and how its rows are read."""

    db: str
    sql: str
    params: Sequence[Any]
    converters: list[tuple[int, Iterable[Callable[..., Any]], Any]]
    read: Callable[[Row], Any]


def _converted(row: Row, converters: Iterable[Any], connection: Any) -> Row:
    """With the values that Python has for what a database has no type of its own for."""
    values = list(row)
    for at, converts, expression in converters:
        for convert in converts:
            values[at] = convert(values[at], expression, connection)
    return values


def _instances(compiler: Any, db: str) -> Callable[[Row], Model]:
    """As ModelIterable reads them, without working out for each query how."""
    about, select = compiler.klass_info, compiler.select
    first, last = about["select_fields"][0], about["select_fields"][-1] + 1
    names = [column.target.attname for column, *_ in select[first:last]]
    related = get_related_populators(about, select, db)

    def read(row: Row) -> Model:
        found = about["model"].from_db(db, names, row[first:last])
        for populator in related:
            populator.populate(row, found)
        for name, at in compiler.annotation_col_map.items():
            setattr(found, name, row[at])
        return found

    return read


READERS: dict[type, Callable[[Any, str], Callable[[Row], Any]]] = {
    ModelIterable: _instances,
    ValuesListIterable: lambda *_: tuple,
    FlatValuesListIterable: lambda *_: lambda row: row[0],
}
