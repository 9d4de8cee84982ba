"""The values of tables by row and by column, and what can be computed from many of them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from .index import Place
from .operands import Computation, Context, Operand, format_number, format_sum
from .tables import Column, Table

MAX_LABELED_ROWS = 12
MAX_GROUPS = 200
MAX_FEW_ROWS = 6


class Aggregate(NamedTuple):
    """What is computed from values of a column, and the cue of its operation."""

    value: float
    unit: str
    cue: str
    computation: Computation

    @property
    def operand(self) -> Operand:
        return Operand(self.value, self.unit, format_number(self.value), self.computation.place)


class TableRow(NamedTuple):
    table: Table
    number: int
    position: int  # of its words in a text


class TableValues:
    """Computes values from the tables of an index; the same sums serve many figures."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables
        self._rows_by_text: dict[str, list[TableRow]] = {}
        self._aggregates_by_rows: dict[tuple[int, int, tuple[int, ...]], list[Aggregate]] = {}

    def rows_in(self, text: str) -> list[TableRow]:
        """Return the rows whose words are in a folded text."""
        if text not in self._rows_by_text:
            self._rows_by_text[text] = [
                TableRow(table, index, min(map(text.find, labels)))
                for table in self.tables
                for index, row_labels in enumerate(table.labels)
                if (labels := [label for label in row_labels if label in text])
            ][: 4 * MAX_LABELED_ROWS]
        return self._rows_by_text[text]

    @cached_property
    def few_rows(self) -> list[TableRow]:
        """All rows of small tables."""
        return [
            TableRow(table, number, 0)
            for table in self.tables
            if len(table.rows) <= MAX_FEW_ROWS
            for number in range(len(table.rows))
        ][:MAX_LABELED_ROWS]

    def operands(
        self, rows: Sequence[TableRow], near: Sequence[Operand]
    ) -> list[list[Operand]]:
        """Return the values of each row, and those of each column in these rows."""
        if len(rows) > MAX_LABELED_ROWS:
            return []
        units = {operand.value: operand.unit for operand in near}
        row_indexes: dict[int, list[int]] = {}
        tables: dict[int, Table] = {}
        operands: list[list[Operand]] = []
        for table, index, _position in rows:
            tables[id(table)] = table
            row_indexes.setdefault(id(table), []).append(index)
            operands.append(
                [
                    _cell(table, column, index, units)
                    for column in table.columns
                    if index in column.values
                ]
            )
        for key, indexes in row_indexes.items():
            if len(indexes) > 1:
                operands += [
                    [
                        _cell(tables[key], column, index, units)
                        for index in indexes
                        if index in column.values
                    ]
                    for column in tables[key].columns
                ]
        return [values for values in operands if len(values) > 1]

    def aggregates(self, context: Context, rows: Sequence[TableRow]) -> Iterator[Aggregate]:
        """Yield sums, averages and ranges: of columns, of some rows, of rows with a label."""
        for table in self.tables:
            named_rows = sorted(row.number for row in rows if row.table is table)
            groups = [
                members
                for label, members in islice(table.groups.items(), MAX_GROUPS)
                if 1 < len(members) < len(table.rows) and label in context.folded_text
            ]
            if table.sum_of_products is not None:
                value, name = table.sum_of_products
                place = Place(table.source, 0, 0)
                computation = Computation("", "sum", len(table.rows), name, place)
                yield Aggregate(value, "", "sum", computation)
            for position, column in enumerate(table.columns):
                if not column.is_additive:
                    continue
                selections = {tuple(column.values)}
                if 1 < len(named_rows) < len(column.values):
                    selections.add(tuple(i for i in named_rows if i in column.values))
                for members in groups:
                    selections.add(tuple(i for i in members if i in column.values))
                for indexes in sorted(selections, key=len, reverse=True):
                    key = (id(table), position, indexes)
                    if key not in self._aggregates_by_rows:
                        self._aggregates_by_rows[key] = _aggregates_of(table, column, indexes)
                    yield from self._aggregates_by_rows[key]


def _aggregates_of(table: Table, column: Column, indexes: Sequence[int]) -> list[Aggregate]:
    values = [column.values[index] for index in indexes]
    size = len(values)
    if size < 2:
        return []
    place = Place(table.source, 0, 0)
    name = column.name
    unit = column.unit
    total = sum(values)
    summands = format_sum([format_number(value) for value in values])
    lowest = min(values)
    highest = max(values)
    spread = f"{format_number(highest)} − {format_number(lowest)}"
    return [
        Aggregate(total, unit, "sum", Computation(summands, "sum", size, name, place)),
        Aggregate(total / size, unit, "average", Computation("", "average", size, name, place)),
        Aggregate(highest - lowest, unit, "difference", Computation(spread, place=place)),
    ]


def _cell(table: Table, column: Column, index: int, units: Mapping[float, str]) -> Operand:
    value = column.values[index]
    unit = column.unit or units.get(value, "")
    return Operand(value, unit, format_number(value), Place(table.source, 0, 0))
