"""Compiled queries: frequent queries whose SQL is built once.

Django builds a query's SQL each time, which takes several times as long as running it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, update_wrapper
from inspect import signature
from typing import Any, Generic, ParamSpec, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.sqlite3.operations import DatabaseOperations
from django.db.models import Expression, JSONField, Model, QuerySet
from django.db.models.base import ModelState
from django.db.models.query import FlatValuesListIterable, ModelIterable, ValuesListIterable
from django.db.models.sql.compiler import SQLCompiler

from .raw_cursor import fetch

Row = Sequence[Any]
Converter = Callable[[Any, BaseDatabaseWrapper], Any]
Result = TypeVar("Result")
Values = ParamSpec("Values")
Instance = TypeVar("Instance", bound=Model)

BOOLEANS = {0: False, 1: True}  # SQLite's


class Placeholder(Expression):
    """A placeholder for a value that is filled in when the query runs."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(  # type: ignore[override]  # a placeholder is its own parameter
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, list["Placeholder"]]:
        return "%s", [self]


class compiled_query(Generic[Values, Result]):
    """Turns a function that returns a queryset into one that returns its rows.

    A function with `*values` is compiled once for each number of them.
    """

    def __init__(self, make: Callable[Values, QuerySet[Any, Result]]) -> None:
        self.make = make
        parameters = signature(make).parameters
        self.is_variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
        self.names = tuple(parameters)
        self._statements = lru_cache(maxsize=256)(self._compile)
        update_wrapper(self, make)

    def __call__(self, *values: Values.args, **keywords: Values.kwargs) -> list[Result]:
        names = self.names
        if self.is_variadic:
            if not values:
                return []  # of no values: no rows
            names = tuple(map(str, range(len(values))))
        statement = self._statements(names)
        bound = dict(zip(names, values, strict=not keywords)) | keywords
        params = [
            bound[param.name] if isinstance(param, Placeholder) else param
            for param in statement.params
        ]
        connection = connections[statement.db]  # one per thread
        rows = self.fetch(connection, statement.sql, params)
        if rows and statement.converters:  # to Python types that the database lacks
            converted = [list(row) for row in rows]
            for row in converted:
                for index, convert in statement.converters:
                    row[index] = convert(row[index], connection)
            return list(map(statement.read_row, converted))
        return list(map(statement.read_row, rows))

    def fetch(self, connection: BaseDatabaseWrapper, sql: str, params: list[Any]) -> list[Row]:
        return fetch(connection, sql, params)

    def check(self, sql: str) -> None:
        """Raise an error if this isn't a query of this kind."""

    def _compile(self, names: tuple[str, ...]) -> "_CompiledQuery":
        make: Callable[..., QuerySet[Any, Result]] = self.make
        queryset = make(*map(Placeholder, names))
        compiler = queryset.query.get_compiler(using=queryset.db)
        sql, params = compiler.as_sql()
        self.check(sql)
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        converters_by_index = compiler.get_converters(columns).items()
        converters = [
            (index, _make_converter(convert, column, compiler.connection))
            for index, (functions, column) in converters_by_index
            for convert in functions
        ]
        read_row = ROW_READERS[queryset._iterable_class](compiler, queryset.db)
        return _CompiledQuery(queryset.db, sql, params, converters, read_row)


@dataclass(frozen=True, slots=True)
class _CompiledQuery:
    """A compiled query, and how its rows are read."""

    db: str
    sql: str
    params: Sequence[Any]
    converters: list[tuple[int, Converter]]
    read_row: Callable[[Row], Any]


def _make_converter(
    convert: Callable[..., Any], column: Any, connection: BaseDatabaseWrapper
) -> Converter:
    """Return a column's converter; the frequent ones without what our values never need."""
    method = getattr(convert, "__func__", None)
    if method is DatabaseOperations.convert_booleanfield_value:
        return _convert_boolean
    if method is DatabaseOperations.convert_datetimefield_value and connection.timezone is UTC:
        return _convert_utc
    if method is JSONField.from_db_value:

        def convert_json(value: Any, connection: BaseDatabaseWrapper) -> Any:
            # Most rows have their defaults, which needn't be parsed.
            if value == "{}":
                return {}
            return [] if value == "[]" else convert(value, column, connection)

        return convert_json
    return lambda value, connection: convert(value, column, connection)


def _convert_boolean(value: Any, _connection: BaseDatabaseWrapper) -> Any:
    return BOOLEANS.get(value, value)


def _convert_utc(value: Any, _connection: BaseDatabaseWrapper) -> datetime | None:
    if value is None:
        return None
    # The driver parses columns, but not what is computed from them.
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time.replace(tzinfo=UTC)


def _instance_reader(compiler: Any, db: str) -> Callable[[Row], Model]:
    """Return a row reader like ModelIterable's, prepared once."""
    create_row = _row_factory(compiler.klass_info, compiler.select, db)
    annotations = list(compiler.annotation_col_map.items())

    def read(row: Row) -> Model:
        instance = create_row(row)
        for name, index in annotations:
            setattr(instance, name, row[index])
        return instance

    return read


def read_instance(
    model: type[Instance], db: str, values: Iterable[tuple[str, Any]]
) -> Instance:
    """Return a saved row with these values of columns, which are set without their fields."""
    instance = model.__new__(model)
    instance._state = ModelState()
    instance._state.adding = False
    instance._state.db = db
    vars(instance).update(values)
    return instance


def _row_factory(klass_info: Any, select: Any, db: str) -> Callable[[Row], Any]:
    """Return a factory for a model and its related ones; None where a row has none.

    Django would set the values one by one, through each field.
    """
    model = klass_info["model"]
    columns = klass_info["select_fields"]
    first = columns[0]
    last = columns[-1] + 1
    names = [column.target.attname for column, *_ in select[first:last]]
    key = first + names.index(model._meta.pk.attname)
    related = [
        (_row_factory(info, select, db), info["local_setter"], info["remote_setter"])
        for info in klass_info.get("related_klass_infos", ())
    ]

    def make(row: Row) -> Model | None:
        if row[key] is None:
            return None
        instance: Model = read_instance(model, db, zip(names, row[first:last], strict=True))
        for make_related, set_local, set_remote in related:
            set_local(instance, related_instance := make_related(row))
            if related_instance is not None:
                set_remote(related_instance, instance)
        return instance

    return make


ROW_READERS: dict[type, Callable[[Any, str], Callable[[Row], Any]]] = {
    ModelIterable: _instance_reader,
    ValuesListIterable: lambda *_: tuple,
    FlatValuesListIterable: lambda *_: lambda row: row[0],
}
