"""What can be worked out of a table, in SQL and in words."""

from typing import Literal

from . import words
from .request import Measure
from .schema import Column, Table


def count(table: Table) -> Measure:
    return Measure(
        kind="count",
        sql="COUNT(*)",
        english=words.plural(table.noun),
        japanese=f"{words.japanese(table.noun)}数",
    )


def count_kinds(column: Column) -> Measure:
    noun = column.name.lower().replace("_", " ")
    return Measure(
        kind="count",
        sql=f"COUNT(DISTINCT {column})",
        english=words.plural(noun),
        japanese=f"{words.japanese(noun)}の数",
    )


def edge(table: Table, first: bool) -> Measure:
    """The date of the first or the last row."""
    function, english, japanese = ("MIN", "first", "最初") if first else ("MAX", "last", "最後")
    return Measure(
        kind="date",
        sql=f"{function}({table.date})",
        english=f"{english} {table.noun}",
        japanese=f"{japanese}の{words.japanese(table.noun)}",
    )


def rows_of(table: Table) -> Measure:
    noun = words.japanese(table.noun)
    return Measure(kind="rows", sql="", english=words.plural(table.noun), japanese=noun)


def aggregate(kind: Literal["sum", "average"], sql: str, table: Table, column: str) -> Measure:
    function, english, japanese = _AGGREGATES[kind]
    return Measure(
        kind=kind,
        sql=f"{function}({sql})",
        english=f"{english} {table.noun} {column.replace('_', ' ')}",
        japanese=f"{japanese}{words.japanese(column)}",
        uses=tables_in(sql),
    )


_AGGREGATES = {"sum": ("SUM", "total", "合計"), "average": ("AVG", "average", "平均")}


def tables_in(sql: str) -> tuple[str, ...]:
    return tuple(part.split(".")[0] for part in sql.split(" * "))
