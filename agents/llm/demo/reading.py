"""From a question about data to a request, by the names in the schema and a few cue words."""

import re
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Literal

from . import cues, filters, words
from . import dimension as dimensions
from . import measure as measures
from . import period as periods
from .dimension import Mention, Sorting
from .history import Question
from .numerals import figures
from .request import Dimension, Filter, Measure, Request
from .schema import MONEY, PRICE, QUANTITY, Column, Schema, Table

LISTED = 20
RANKED = 5
MOST = 100


def read(question: Question, schema: Schema, today: date) -> Request | None:
    """The request that the question makes, or None where it is about something else."""
    return _Reader(question, schema, today).request()


class _Reader:
    def __init__(self, question: Question, schema: Schema, today: date) -> None:
        self.schema = schema
        self.today = today
        self.text = cues.NO_ORDER.sub("", " ".join(question.plain.split()))
        self.question = question

    def request(self) -> Request | None:
        if self.said(cues.ELSEWHERE) and not self.tables and not self.said(cues.MONEY):
            return None
        # As it was said: without "order in", `placed an order in 2026` is cut short.
        if cues.NEVER_ORDERED.search(self.question.plain) and (found := self._unordered()):
            return found
        request = (
            self._first_date()
            or self._extreme()
            or self._limited()
            or self._measured()
            or self._listed()
        )
        if request is None:
            return None
        conditions = self._conditions(request.base)
        # What never happened is no list of what did: better no request than its opposite.
        if self.said(cues.NEVER) and not any("NOT IN" in found.sql for found in conditions):
            return None
        return self._side_by_side(replace(request, period=self.period, filters=conditions))

    def _conditions(self, base: Table) -> tuple[Filter, ...]:
        return tuple(filters.find(self.question, self.schema, base, self.today))

    @property
    def period(self) -> periods.Period | None:
        return periods.span(periods.find(self.text, self.today), self.text, self.today)

    def said(self, pattern: re.Pattern[str]) -> bool:
        return pattern.search(self.text) is not None

    @cached_property
    def tables(self) -> list[Table]:
        """The tables that are named, in the order of their names."""
        mentions = sorted(self._mentions(self.schema.tables), key=lambda m: m.start)
        return list(dict.fromkeys(m.dimension.table for m in mentions if m.dimension.table))

    @cached_property
    def numbers(self) -> list[Column]:
        """The columns of numbers that are named, those of a named table first."""
        columns = [c for c in self.schema.columns if c.is_number]
        named = [c for c in columns if words.pattern(c.words[-1]).search(self.text)]
        return sorted(named, key=lambda c: self.schema.table(c.table) not in self.tables)

    @cached_property
    def sorting(self) -> tuple[Sorting, Mention] | None:
        return dimensions.find(self.text, self.schema)

    def _mentions(self, tables: tuple[Table, ...]) -> list[Mention]:
        return list(dimensions.tables(self.text, tables))

    def _extreme(self) -> Request | None:
        """The dearest, the largest, the latest or the oldest rows themselves."""
        up = self.said(cues.CHEAP) or self.said(cues.OLDEST) or self.said(cues.SMALL)
        column = self._dear_column() or self._big_column() or self._dated_column()
        if column is None:
            return None
        table = self.schema.table(column.table)
        limit = self._limit() or (RANKED if self._is_plural(table) else 1)
        return replace(self._rows(table), order=column, ascending=up, limit=limit)

    def _first_date(self) -> Request | None:
        """When something was for the first or the last time."""
        undated = periods.remove(self.text)
        first, final = (bool(cue.search(undated)) for cue in (cues.FIRST, cues.FINAL))
        if not self.said(cues.WHEN) or first == final or not self.tables:
            return None
        table = self.tables[0]
        return (
            replace(self._rows(table), measure=measures.edge(table, first))
            if table.date
            else None
        )

    def _unordered_table(self) -> Table | None:
        """What may be without orders: a table that the ledger refers to."""
        ledger = self.schema.ledger
        reach = self.schema.reach(ledger.name)[1:] if ledger else []
        return next((table for table in self.tables if table in reach), None)

    def _unordered(self) -> Request | None:
        """`Which customers have never ordered?`"""
        table, ledger = self._unordered_table(), self.schema.ledger
        never = filters.never_ordered(table, ledger, self.period) if table and ledger else None
        # A name may be of who did not order or of what was not: only a guess could tell.
        is_named = filters.names(self.question, self.schema, self.today)
        if table is None or never is None or is_named:
            return None
        conditions = (*self._conditions(table), never)
        if self.said(cues.COUNT):
            return Request(
                schema=self.schema,
                base=table,
                measure=measures.count(table),
                filters=conditions,
            )
        return replace(self._rows(table), filters=conditions, limit=self._limit() or LISTED)

    def _dear_column(self) -> Column | None:
        if self.said(cues.MONEY) or not (self.said(cues.DEAR) or self.said(cues.CHEAP)):
            return None
        prices = (table.number(*PRICE) for table in self.tables or self.schema.tables)
        return next((price for price in prices if price), None)

    def _big_column(self) -> Column | None:
        said = self.said(cues.BIG) or self.said(cues.SMALL) or self.said(cues.DEAR)
        ledger = self.schema.ledger
        other = self.sorting and self.sorting[1].dimension.table != ledger
        if not said or ledger is None or self.tables[:1] != [ledger] or other:
            return None
        return ledger.number(*MONEY)

    def _dated_column(self) -> Column | None:
        said = self.said(cues.NEWEST) or self.said(cues.OLDEST)
        return self.tables[0].date if said and self.tables else None

    def _is_plural(self, table: Table) -> bool:
        return self.said(cues.MANY_JA) or any(
            mention.text.endswith("s") for mention in self._mentions((table,))
        )

    def _limited(self) -> Request | None:
        """Rows above or below some amount: `orders over 500`."""
        works_out = any(
            map(self.said, (cues.COUNT, cues.AVERAGE, cues.SUM, cues.MONEY, cues.SHARE))
        )
        if works_out or not self.tables or not filters.limits_amount(self.text):
            return None
        return replace(self._rows(self.tables[0]), limit=self._limit() or LISTED)

    def _rows(self, table: Table) -> Request:
        return Request(schema=self.schema, base=table, measure=measures.rows_of(table))

    def _measured(self) -> Request | None:
        dimension = self.sorting[1].dimension if self.sorting else None
        found = self._measure(dimension)
        if found is None:
            return None
        request = Request(schema=self.schema, base=found[0], measure=found[1])
        if dimension is None:
            return request
        placed = self._place(request.base, dimension)
        if placed:
            return self._ranked(replace(request, dimension=placed))
        through = self._through_ledger(request.base, dimension)
        return self._ranked(through) if through else None

    def _ranked(self, request: Request) -> Request:
        if self.sorting is None or self.sorting[0] == "group":
            return replace(request, limit=self._limit())
        is_plural = self.sorting[1].text.endswith("s") or self.said(cues.MANY_JA)
        limit = self._limit() or (RANKED if is_plural else 1)
        return replace(request, limit=limit, ascending=self.said(cues.WORST))

    def _through_ledger(self, counted: Table, dimension: Dimension) -> Request | None:
        """Things counted by what they were part of: customers by category, through orders."""
        ledger = self.schema.ledger
        placed = self._place(ledger, dimension) if ledger else None
        measure = self._distinct(ledger, counted) if ledger else None
        if ledger is None or placed is None or measure is None:
            return None
        return Request(schema=self.schema, base=ledger, measure=measure, dimension=placed)

    def _distinct(self, ledger: Table, counted: Table) -> Measure | None:
        for column in ledger.references:
            if column.reference and column.reference[0] == counted.name:
                return replace(measures.count(counted), sql=f"COUNT(DISTINCT {column})")
        return None

    def _measure(self, dimension: Dimension | None) -> tuple[Table, Measure] | None:
        """The table to start from and what to work out."""
        others = [t for t in self.tables if not dimension or t != dimension.table]
        if self.said(cues.COUNT):
            return self._counted(others)
        if self.said(cues.AVERAGE):
            return self._aggregated("average", others)
        if most := dimensions.most(self.text, others):
            return most, measures.count(most)
        if self.said(cues.MONEY):
            return self._earned()
        if self.numbers and (self.said(cues.SUM) or dimension):
            return self._aggregated("sum", others)
        if self.said(cues.TRADE) and (self.said(cues.SUM) or dimension):
            return self._earned()
        if others and (self.said(cues.SUM) or self.said(cues.SHARE)):
            return others[0], measures.count(others[0])
        return self._implied(dimension, others) if dimension else None

    def _counted(self, others: list[Table]) -> tuple[Table, Measure] | None:
        kind = dimensions.counted_kind(self.text, self.schema)
        if kind:
            return self.schema.table(kind.table), measures.count_kinds(kind)
        if not others:
            units = any(column.means(*QUANTITY) for column in self.numbers)
            return self._aggregated("sum", others) if units else None
        counted, ledger = others[0], self.schema.ledger
        if ledger and counted != ledger and self.said(cues.ORDERED):
            distinct = self._distinct(ledger, counted)
            return (ledger, distinct) if distinct else (counted, measures.count(counted))
        return counted, measures.count(counted)

    def _aggregated(
        self, kind: Literal["sum", "average"], others: list[Table]
    ) -> tuple[Table, Measure] | None:
        if self.numbers:
            column = self.numbers[0]
            table = self.schema.table(column.table)
            return table, measures.aggregate(kind, str(column), table, column.name)
        worth = [table for table in [*others, self.schema.ledger] if table]
        for table in worth:
            if money := self.schema.money(table):
                return table, measures.aggregate(kind, money, table, "amount")
        return None

    def _earned(self) -> tuple[Table, Measure] | None:
        ledger = self.schema.ledger
        money = self.schema.money(ledger) if ledger else None
        if ledger is None or money is None:
            return None
        revenue = Measure(
            kind="sum",
            sql=f"SUM({money})",
            english="revenue",
            japanese="売上",
            uses=measures.tables_in(money),
        )
        return ledger, revenue

    def _implied(
        self, dimension: Dimension, others: list[Table]
    ) -> tuple[Table, Measure] | None:
        """What is meant where only the sorting is said: `best customers`."""
        is_group = self.sorting is not None and self.sorting[0] == "group"
        if is_group and others:
            return others[0], measures.count(others[0])
        if is_group and dimension.column:
            table = self.schema.table(dimension.column.table)
            return table, measures.count(table)
        earned = self._earned() if self.said(cues.BEST) else None
        return earned if earned and self._place(earned[0], dimension) else None

    def _place(self, base: Table, dimension: Dimension) -> Dimension | None:
        """The dimension as it can be had from this table, if it can."""
        reach = self.schema.reach(base.name)
        if dimension.unit:
            return dimension if any(table.date for table in reach) else None
        if dimension.column is None:
            return dimension if dimension.table in reach else None
        name, names = dimension.column.name, [table.name for table in reach]
        same = (c for c in self.schema.columns if c.name == name and c.table in names)
        column = next(same, None)
        return replace(dimension, column=column) if column else None

    def _listed(self) -> Request | None:
        asks_kinds = self.said(cues.KINDS) or (self.said(cues.LIST) and not self.tables)
        kinds = list(dimensions.kinds(self.text, self.schema)) if asks_kinds else []
        for mention in kinds:
            if column := mention.dimension.column:
                rows = self._rows(self.schema.table(column.table))
                return replace(rows, dimension=mention.dimension, order=column, ascending=True)
        is_named = filters.names(self.question, self.schema, self.today)
        named = [self.schema.table(column.table) for column in self.numbers if is_named]
        table = next(iter([*self.tables, *named]), None)
        if table is None or not (self.said(cues.LIST) or is_named):
            return None
        return replace(self._rows(table), limit=self._limit() or LISTED)

    def _limit(self) -> int | None:
        match = cues.LIMIT.search(self.text)
        found = next(filter(None, match.groups()), None) if match else None
        return min(int(figures(found)), MOST) if found else None

    def _side_by_side(self, request: Request) -> Request:
        """Two places that are asked for together are two groups."""
        kinds = [kind for kind, _ in filters.places(self.text)]
        twice = next((kind for kind in kinds if kinds.count(kind) > 1), None)
        column = filters.place_column(twice, self.schema, request.base) if twice else None
        if column is None or not request.is_one_value:
            return request
        return replace(request, dimension=dimensions.of_column(column))
