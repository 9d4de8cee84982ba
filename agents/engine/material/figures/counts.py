"""Counts: of rows, of groups of rows, and of rows above or below a limit."""

from decimal import Decimal
from itertools import islice

from .cues import limit_directions
from .index import FigureIndex, Place
from .operands import Computation, Context
from .parsing import Figure
from .tables import Table
from .units import dimension_of

MAX_GROUPS = 200
MAX_LIMITS = 14
COUNTED_DIMENSIONS = {"", "age"}


def explain_count(figure: Figure, context: Context, index: FigureIndex) -> Computation | None:
    """Return which rows or items a whole number counts."""
    value = figure.value
    if not isinstance(value, Decimal) or value != int(value):
        return None
    number = int(value)
    dimension = dimension_of(figure.unit)
    if dimension == "time":  # rows for days or months
        heads = "".join(name for table in index.tables for name in table.names).lower()
        is_count = any(number == len(table.rows) for table in index.tables)
        return Computation("", "count", number) if is_count and figure.unit in heads else None
    if dimension not in COUNTED_DIMENSIONS:
        return None
    if number in context.counts:
        return Computation("", "count", number)
    for table in index.tables:
        place = Place(table.source, 0, 0)
        if number == len(table.rows):
            return Computation("", "count", number, place=place)
        for label, rows in islice(table.groups.items(), MAX_GROUPS):
            if number == len(rows) and label in context.folded_text:
                return Computation("", "count", number, label, place)
        if _is_count_beyond(number, table, context):
            return Computation("", "count", number, place=place)
    return None


def _is_count_beyond(number: int, table: Table, context: Context) -> bool:
    """Whether so many rows are above or below a limit that the sentence names."""
    for operand in context.near[:MAX_LIMITS]:
        is_above, is_below = limit_directions(context.sentence, operand.text)
        limit = operand.value
        for column in table.columns if is_above or is_below else ():
            values = column.values.values()
            equal = sum(value == limit for value in values)
            above = sum(value > limit for value in values)
            below = len(values) - equal - above
            if is_above and number in {above, above + equal}:
                return True
            if is_below and number in {below, below + equal}:
                return True
    return False
