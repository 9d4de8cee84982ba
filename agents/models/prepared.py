"""Queries that are asked all the time, put into SQL once.

Django works a query out anew each time, and that takes several times as long as to ask it.
"""

from collections.abc import Callable
from functools import cached_property, update_wrapper
from inspect import signature
from typing import Any

from django.db import connections
from django.db.models import Expression, QuerySet


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
        made, (kept, sql, blanks) = self._made, self._compiled
        filled = dict(zip(self.names, values, strict=True))
        params = tuple(filled[b.name] if isinstance(b, Blank) else b for b in blanks)
        # Each thread has a connection of its own.
        compiler = _like(kept, connection=connections[made.db], as_sql=_always(sql, params))
        query = _like(made.query, get_compiler=_always(compiler))
        asked = type(made)(made.model, query, made.db)
        asked._iterable_class, asked._fields = made._iterable_class, made._fields
        return list(asked)

    @cached_property
    def _made(self) -> QuerySet:
        return self.make(*map(Blank, self.names))

    @cached_property
    def _compiled(self) -> tuple[Any, str, tuple[Any, ...]]:
        compiler = self._made.query.get_compiler(using=self._made.db)
        sql, params = compiler.as_sql()
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        compiler.get_converters = _always(compiler.get_converters(columns))
        compiler.has_composite_fields = _always(compiler.has_composite_fields(columns))
        return compiler, sql, params


def _like(kept: Any, **others: Any) -> Any:
    """The same, but for these attributes."""
    same = object.__new__(type(kept))
    vars(same).update(vars(kept), **others)
    return same


def _always(*answer: Any) -> Callable[..., Any]:
    given = answer if len(answer) > 1 else answer[0]
    return lambda *_, **__: given
