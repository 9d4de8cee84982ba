"""What is asked of a database, as a value, and the SQL that asks it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .period import Period
from .schema import Column, Schema, Table

TimeUnit = Literal["day", "month", "year"]
_RESERVED = ("order", "group", "user", "table", "index", "case", "transaction")
_LENGTHS: dict[TimeUnit, int] = {"day": 10, "month": 7, "year": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is worked out, or the rows themselves; `uses` are the tables it needs."""

    kind: Literal["count", "sum", "average", "date", "rows"]
    sql: str
    english: str
    japanese: str
    uses: tuple[str, ...] = ()

    @property
    def alias(self) -> str:
        return self.english.replace(" ", "_").replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """What the rows are sorted into: things, a kind of things, or time."""

    english: str
    japanese: str
    table: Table | None = None
    column: Column | None = None
    unit: TimeUnit | None = None

    @property
    def alias(self) -> str:
        word = self.english.replace(" ", "_")
        return f"{word}_name" if word in _RESERVED else word


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A condition, with the tables it needs and how it is put in words.

    `name` is what the rows have to be called, where that is the condition.
    """

    sql: str
    tables: tuple[str, ...]
    english: str
    japanese: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    schema: Schema
    base: Table
    measure: Measure
    dimension: Dimension | None = None
    period: Period | None = None
    filters: tuple[Filter, ...] = ()
    order: Column | None = None
    ascending: bool = False
    limit: int | None = None

    @property
    def is_one_value(self) -> bool:
        return self.measure.kind not in ("rows", "date") and self.dimension is None

    @property
    def is_plain_list(self) -> bool:
        return self.measure.kind == "rows" and self.dimension is None and self.order is None

    @property
    def date(self) -> Column | None:
        """The date that a period is about."""
        dates = (table.date for table in self.schema.reach(self.base.name))
        return next((column for column in dates if column), None)

    @property
    def sql(self) -> str:
        lines = [
            f"SELECT {', '.join(self._selected())}",
            f"FROM {self.base.name}",
            *self._joins(),
            self._where(),
            *self._endings(),
        ]
        return self._plain("\n".join(line for line in lines if line))

    def _plain(self, sql: str) -> str:
        """Column names alone where there is only one table they could come from."""
        return sql if "\nJOIN " in sql else sql.replace(f"{self.base.name}.", "")

    def _selected(self) -> list[str]:
        if self.measure.kind == "rows":
            return self._shown()
        measured = f"{self.measure.sql} AS {self.measure.alias}"
        if self.dimension is None:
            return [measured]
        grouping, alias = self.grouping, self.dimension.alias
        is_named_so = grouping.partition(".")[2] == alias
        return [grouping if is_named_so else f"{grouping} AS {alias}", measured]

    def _shown(self) -> list[str]:
        if self.dimension and self.dimension.column:
            return [f"DISTINCT {self.dimension.column}"]
        own = [str(column) for column in self.base.columns if not column.reference]
        labels = (self.schema.table(table).label for table in self._labelled())
        return own + [f"{label} AS {_noun(self.schema, label)}" for label in labels if label]

    def _labelled(self) -> list[str]:
        targets = [c.reference[0] for c in self.base.references if c.reference]
        return [name for name in targets if self.schema.path(self.base.name, name)]

    @property
    def grouping(self) -> str:
        dimension = self.dimension
        if dimension and dimension.unit and self.date:
            return f"SUBSTR({self.date}, 1, {_LENGTHS[dimension.unit]})"
        if dimension and dimension.column:
            return str(dimension.column)
        table = dimension.table if dimension else None
        return str((table.label or table.key) if table else self.base.key)

    def _joins(self) -> list[str]:
        needed: dict[str, str] = {}
        for goal in self._needed():
            for column in self.schema.path(self.base.name, goal) or ():
                table, key = column.reference or ("", "")
                needed[table] = f"JOIN {table} ON {table}.{key} = {column}"
        return list(needed.values())

    def _needed(self) -> Iterable[str]:
        yield from self.measure.uses
        yield from (table for condition in self.filters for table in condition.tables)
        if self.period and self.date:
            yield self.date.table
        if self.measure.kind == "rows" and self.dimension is None:
            yield from self._labelled()
        if self.dimension:
            yield from self._grouped_from(self.dimension)

    def _grouped_from(self, dimension: Dimension) -> Iterable[str]:
        if dimension.unit and self.date:
            yield self.date.table
        elif dimension.column:
            yield dimension.column.table
        elif dimension.table:
            yield dimension.table.name

    def _where(self) -> str:
        conditions = [condition.sql for condition in self.filters]
        if self.period and self.date:
            conditions.append(f"{self.date} >= '{self.period.start}'")
            conditions.append(f"{self.date} < '{self.period.end}'")
        return f"WHERE {' AND '.join(conditions)}" if conditions else ""

    def _endings(self) -> list[str]:
        lines = []
        if self.dimension and self.measure.kind != "rows":
            lines.append(f"GROUP BY {self._group()}")
        if ordering := self._ordering():
            lines.append(f"ORDER BY {ordering}")
        if self.limit:
            lines.append(f"LIMIT {self.limit}")
        return lines

    def _group(self) -> str:
        table = self.dimension.table if self.dimension else None
        return f"{table.key}, {self.grouping}" if table and table.label else self.grouping

    def _ordering(self) -> str:
        direction = "ASC" if self.ascending else "DESC"
        if self.measure.kind == "rows":
            return f"{self.order} {direction}" if self.order else ""
        if self.dimension is None:
            return ""
        is_series = self.dimension.unit is not None and self.limit is None
        return self.dimension.alias if is_series else f"{self.measure.alias} {direction}"


def _noun(schema: Schema, column: Column) -> str:
    return schema.table(column.table).noun.replace(" ", "_")
