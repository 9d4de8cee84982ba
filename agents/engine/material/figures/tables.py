"""Tables in what tools return: JSON, Markdown and CSV."""

import csv
import json
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from .parsing import figures_in, half_width
from .units import dimension_of, unit_of

MAX_ROWS = 2_000
MAX_TABLES = 20
MAX_COLUMNS = 30
MAX_MULTIPLIED_ROWS = 50
MIN_LABEL_CHARS = 2
MAX_PREFIX_CHARS = 2
LIST_LINE = re.compile(r"^[ \t]*(?:[-*•・]|\d{1,3}[.)])[ \t]+\S.*$", re.MULTILINE)
UNIT_OF_NAME = re.compile(r"(?:%|(?<![A-Za-z])(?P<word>[A-Za-z]{1,8}))[)）]?$")
DELIMITER_ROW = re.compile(r"[ \t]*\|?[ \t:|-]*-[ \t:|-]*")


@dataclass(frozen=True)
class Column:
    """The numbers of a column, each with its row."""

    name: str
    values: dict[int, float]
    unit: str = ""

    @cached_property
    def total(self) -> float:
        return sum(self.values.values())

    @property
    def is_additive(self) -> bool:
        """Whether its values can be added up; numbers such as years and IDs can't."""
        return not re.fullmatch(r"(?i).*(?:\bid|_id|year|年|number|no\.?|rank|順位)", self.name)


@dataclass(frozen=True)
class Table:
    """The rows of a result, with its numbers by column and its words by row."""

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    source: int = 0

    @cached_property
    def columns(self) -> list[Column]:
        columns: list[Column] = []
        width = min(MAX_COLUMNS, max(map(len, self.rows), default=0))
        for position in range(width):
            values: dict[int, float] = {}
            unit = ""
            for index, row in enumerate(self.rows):
                cell = row[position] if position < len(row) else None
                number = _number(cell)
                if number is not None:
                    values[index] = number[0]
                    unit = unit or number[1]
            # A total below the rows isn't one of them.
            if values and 2 * len(values) >= len(self.rows):
                name = self.names[position] if position < len(self.names) else ""
                columns.append(Column(name, values, unit or unit_in_name(name)))
        return columns

    @cached_property
    def sum_of_products(self) -> tuple[float, str] | None:
        """The sum over rows of the last two columns' products, such as numbers and prices."""
        columns = [column for column in self.columns if column.is_additive][-2:]
        if len(columns) < 2 or not 1 < len(self.rows) <= MAX_MULTIPLIED_ROWS:
            return None
        first, second = columns
        products = [
            value * second.values[index]
            for index, value in first.values.items()
            if index in second.values
        ]
        return sum(products), f"{first.name} × {second.name}"

    @cached_property
    def labels(self) -> list[frozenset[str]]:
        """The words of each row."""
        return [
            frozenset(
                text
                for cell in row
                if isinstance(cell, str)
                and len(text := cell.strip().casefold()) >= MIN_LABEL_CHARS
                and _number(cell) is None
            )
            for row in self.rows
        ]

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """The rows with the same word, if several have it."""
        groups: dict[str, list[int]] = {}
        for index, labels in enumerate(self.labels):
            for label in labels:
                groups.setdefault(label, []).append(index)
        return groups


def tables_in(text: str, source: int = 0) -> list[Table]:
    """Return the tables of a text; a list counts as a table, too."""
    if text.startswith(("[", "{")):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return []
        return _json_tables(value, source)[:MAX_TABLES]
    return _text_tables(text, source)[:MAX_TABLES]


def tables_of_items(texts: Sequence[str], groups: Sequence[Hashable]) -> list[Table]:
    """Return the tables of texts; those with the same group are rows, a line for each value."""
    rows: dict[Hashable, list[list[str]]] = {}
    first: dict[Hashable, int] = {}
    tables: list[Table] = []
    for index, (text, group) in enumerate(zip(texts, groups, strict=True)):
        if group is None:
            tables += tables_in(text, index)
        else:
            first.setdefault(group, index)
            rows.setdefault(group, []).append(text.split("\n"))
    tables += [Table((), items, first[group]) for group, items in rows.items()]
    return tables[:MAX_TABLES]


def _json_tables(value: Any, source: int, depth: int = 0) -> list[Table]:
    if depth > 3:
        return []
    if isinstance(value, dict):
        rows = value.get("rows")
        names = value.get("columns")
        if (
            isinstance(rows, list)
            and isinstance(names, list)
            and all(isinstance(r, list) for r in rows)
        ):
            return [Table([str(name) for name in names], rows[:MAX_ROWS], source)]
        tables = [
            table for item in value.values() for table in _json_tables(item, source, depth + 1)
        ]
        numbers = {
            k: v
            for k, v in value.items()
            if isinstance(v, int | float) and not isinstance(v, bool)
        }
        if len(numbers) >= 2:  # such as the sums by month
            tables.append(Table(("", ""), [[k, v] for k, v in numbers.items()], source))
        return tables
    if not isinstance(value, list) or not value:
        return []
    if all(isinstance(item, dict) for item in value):
        keys = list(dict.fromkeys(key for item in value[:MAX_ROWS] for key in item))[
            :MAX_COLUMNS
        ]
        rows = [[item.get(key) for key in keys] for item in value[:MAX_ROWS]]
        nested = [
            table
            for item in value[:MAX_TABLES]
            for inner in item.values()
            if isinstance(inner, dict | list)
            for table in _json_tables(inner, source, depth + 1)
        ]
        return [Table([str(key) for key in keys], rows, source), *nested]
    if all(isinstance(item, list) for item in value):
        return [Table((), value[:MAX_ROWS], source)]
    return [Table((), [[item] for item in value[:MAX_ROWS]], source)]


def _text_tables(text: str, source: int) -> list[Table]:
    tables: list[Table] = []
    lines = text.split("\n")
    piped: list[list[str]] = []
    for line in [*lines, ""]:
        stripped = line.strip()
        if "|" in stripped and not DELIMITER_ROW.fullmatch(stripped):
            piped.append([cell.strip() for cell in stripped.strip("|").split("|")])
        elif piped and not stripped.startswith("|"):
            if len(piped) > 1:
                tables.append(Table(piped[0], piped[1:], source))
            piped = []
    for separator in ("\t", "  ", ","):
        rows = _separated_rows(lines, separator)
        if len(rows) > 2:
            tables.append(Table(rows[0], rows[1:], source))
            break
    listed = LIST_LINE.findall(text)
    if len(listed) > 1:
        tables.append(_line_table(listed, source))
    elif not tables:
        filled = [line for line in lines if line.strip()]
        if 1 < len(filled) <= MAX_ROWS:
            tables.append(_line_table(filled, source))
    return tables


def _line_table(lines: Sequence[str], source: int) -> Table:
    """Return lines with their numbers as columns: the first, the second and so on."""
    rows: list[list[Any]] = []
    for line in lines:
        figures = [f for f in figures_in(line) if isinstance(f.value, Decimal)]
        end = figures[0].start if figures else len(line)
        label = re.split(r"[:：、,(（]", line[:end], maxsplit=1)[0].strip(" \t-*•・")
        numbers = [line[figure.start : figure.end] for figure in figures]
        rows.append([label, *numbers])
    return Table((), rows, source)


def _separated_rows(lines: Iterable[str], separator: str) -> list[list[str]]:
    """Return the lines that have as many values as the first one, if most do."""
    if separator == "  ":  # aligned with spaces
        lines = [re.sub(r" {2,}", "\t", line.strip()) for line in lines if "|" not in line]
        separator = "\t"
    candidates = [line for line in lines if line.count(separator) >= 1]
    # A comma between the digits of a number separates no values.
    if len(candidates) < 3 or not re.search(
        rf"(?<!\d){separator}|{separator}(?!\d)", candidates[0]
    ):
        return []
    width = candidates[0].count(separator)
    rows = [row for row in csv.reader(candidates, delimiter=separator) if len(row) == width + 1]
    return rows if 2 * len(rows) > len(candidates) and ". " not in candidates[0] else []


def unit_in_name(name: str) -> str:
    """Return the unit that a column's name ends with: cpu%, co2_kg, Weight (g)."""
    end = UNIT_OF_NAME.search(name)
    unit = unit_of(end["word"] or "%") if end and not re.search(r"(?i)per|/", name) else ""
    return unit if dimension_of(unit) else ""


def _number(cell: Any) -> tuple[float, str] | None:
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int | float):
        return float(cell), ""
    if not isinstance(cell, str) or not any(map(str.isdigit, cell)) or len(cell) > 60:
        return None
    try:
        return float(cell), ""
    except ValueError:
        pass
    figures = list(figures_in(half_width(cell)))
    value = figures[0].value if len(figures) == 1 else None
    # A number inside words isn't the value of a cell.
    if not isinstance(value, Decimal) or figures[0].start > MAX_PREFIX_CHARS:
        return None
    return float(value), figures[0].unit
