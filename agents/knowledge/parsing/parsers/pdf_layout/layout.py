"""Puts a page's lines and tables in reading order."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ..values import WorkLimit
from . import columns, tables
from .rulings import find_rulings
from .tables import Table
from .words import Line, read_lines

MAX_LINES = 5_000  # of a page that is searched for tables
LINE_STEPS = 40


def read_page(page: Any, work: WorkLimit) -> list[Line | Table]:
    """Return the lines and tables of a page."""
    lines = list(read_lines(page, work))
    if not 2 < len(lines) <= MAX_LINES:
        return list(lines)
    work.spend(len(lines) * LINE_STEPS)
    rulings = find_rulings(page, work)
    ruled = tables.ruled_tables(lines, rulings, work) if rulings.vertical else []
    items = _with_tables(lines, ruled)
    # Tables over the whole width come before columns of text, which can have tables, too.
    for find in (_find_aligned, _order_columns):
        blocks: list[Line | Table] = []
        for is_line, run in groupby(items, key=lambda item: isinstance(item, Line)):
            group = list(run)
            blocks += find(group) if is_line else group
        items = blocks
    return items


def _find_aligned(lines: Any) -> list[Line | Table]:
    return _with_tables(lines, tables.aligned_tables(lines))


def _order_columns(lines: Any) -> list[Line | Table]:
    groups = columns.in_reading_order(lines)
    if len(groups) == 1:
        return list(lines)
    return [item for group in groups for item in _find_aligned(group)]


def _with_tables(lines: Sequence[Line], found: list[Table]) -> list[Line | Table]:
    """Return lines with tables instead of the words that are in them."""
    if not found:
        return list(lines)
    taken = {word for table in found for word in table.words}
    by_order: dict[int, list[Table]] = {}
    for table in found:
        by_order.setdefault(table.order, []).append(table)
    items: list[Line | Table] = []
    for number, line in enumerate(lines):
        items += by_order.get(number, [])
        left = [word for word in line.words if id(word) not in taken]
        if len(left) == len(line.words):
            items.append(line)
        elif left:
            items.append(Line(left))
    return items
