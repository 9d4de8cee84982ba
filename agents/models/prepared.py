"""Queries that are asked all the time, put into SQL once.

Django works a query out anew each time, and that takes several times as long as to ask it.
"""

from collections.abc import Callable
from copy import copy
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
        compiler, query = copy(kept), copy(made.query)
        compiler.connection = connections[made.db]  # each thread has its own
        compiler.as_sql = lambda *_, **__: (sql, params)
        query.get_compiler = lambda *_, **__: compiler
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
        converters = compiler.get_converters(columns)
        compiler.get_converters = lambda *_: converters
        return compiler, sql, params
