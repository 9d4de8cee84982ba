"""Finds the operation by which a figure follows from others.

With many values nearly every number is some difference of two, so only plausible operands are
tried, the most plausible first, and fewer of them for a figure with few digits.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import chain

from .counts import explain_count
from .cues import cues_of
from .dates import DateArithmetic
from .index import FigureIndex, Place
from .operands import (
    Computation,
    Context,
    Operand,
    distinct_operands,
    format_sum,
    is_year,
)
from .operations import (
    MAX_ALIKE,
    explain_by_pair,
    explain_by_scale,
    explain_by_share,
    explain_by_sum,
)
from .parsing import Figure, Period
from .table_values import Aggregate, TableValues
from .target import Target
from .units import dimension_of

MAX_OPERANDS = 14
MAX_FIGURES = 8 * MAX_OPERANDS  # of results whose numbers are all tried


class Arithmetic:
    """Computes plausible figures from an index."""

    def __init__(self, index: FigureIndex) -> None:
        self.index = index
        self._dates = DateArithmetic(index)
        self._tables = TableValues(index.tables)

    def explain(self, figure: Figure, context: Context) -> Computation | None:
        """Return how a figure follows from the results, if it does."""
        if isinstance(figure.value, date | Period):
            return self._dates.explain(figure.value, context)
        if not isinstance(figure.value, Decimal):
            return None
        if count := explain_count(figure, context, self.index):
            return count
        target = Target(figure, context.sentence, is_scaled=self.index.has_scaled_heads)
        cues = cues_of(figure, context, self.index.known)
        near = distinct_operands(context.near, figure)[:MAX_OPERANDS]
        nearby_operands = [*context.nearby, *self._question_numbers]
        nearby = distinct_operands([*near, *nearby_operands], figure)[:MAX_OPERANDS]
        return self._explain_by_context(
            target, context, cues, near, nearby
        ) or self._explain_by_numbers(target, context, cues, near, nearby)

    def _explain_by_context(
        self,
        target: Target,
        context: Context,
        cues: frozenset[str],
        near: Sequence[Operand],
        nearby: Sequence[Operand],
    ) -> Computation | None:
        """Try what the sentence, its surroundings and the rows it names suggest."""
        figure = target.figure
        rows = self._tables.rows_in(context.folded_sentence)
        rows = sorted(rows, key=lambda row: abs(row.position - figure.start))
        rows = rows or self._tables.rows_in(context.folded_text)
        aggregates = list(self._tables.aggregates(context, rows))
        cued = [aggregate for aggregate in aggregates if aggregate.cue in cues]
        uncued = [aggregate for aggregate in aggregates if aggregate.cue not in cues]
        if not target.is_share:
            for aggregate in cued:
                if target.matches(aggregate.value, aggregate.unit):
                    return aggregate.computation
            if computation := explain_by_sum(target, near, cues):
                return computation
            for aggregate in self._totals if "sum" in cues else ():
                if target.matches(aggregate.value, aggregate.unit):
                    return aggregate.computation
            for aggregate in uncued if figure.digits > 1 else ():
                is_sum = aggregate.cue == "sum"
                if is_sum and target.matches(aggregate.value, aggregate.unit):
                    return aggregate.computation
        table_operands = self._tables.operands(rows, context.near)
        for operands in table_operands:  # of one row, and of one column
            is_short = len(operands) <= MAX_ALIKE and figure.digits > 1
            row_cues = cues | {"rate", "product"} if is_short else cues
            if computation := explain_by_pair(target, operands, operands, row_cues):
                return computation
        totals = [a.operand for a in ([*cued, *uncued] if target.is_share else uncued)]
        if target.is_share:
            amounts = [*near, *chain.from_iterable(table_operands)]
            amounts = distinct_operands(amounts, figure)[: 2 * MAX_OPERANDS]
            if computation := explain_by_share(target, amounts, totals):
                return computation
        if computation := explain_by_pair(target, near or nearby, nearby, cues):
            return computation
        for aggregate in uncued if not target.is_share and figure.digits > 1 else ():
            if target.matches(aggregate.value, aggregate.unit):
                return aggregate.computation
        return None

    def _explain_by_numbers(
        self,
        target: Target,
        context: Context,
        cues: frozenset[str],
        near: Sequence[Operand],
        nearby: Sequence[Operand],
    ) -> Computation | None:
        """Try all numbers of a short result."""
        figure = target.figure
        units = {
            operand.value: operand.unit
            for operand in reversed([*context.near, *context.nearby, *self._question_numbers])
        }
        numbers = distinct_operands(
            [o._replace(unit=o.unit or units.get(o.value, "")) for o in self._all_numbers],
            figure,
        )
        target.renew()
        for duration in self._dates.durations if dimension_of(figure.unit) == "time" else ():
            if target.matches(duration.value, duration.unit):
                return duration.computation
        target.renew()
        for operands in self._tables.operands(self._tables.few_rows, context.near):
            if computation := explain_by_pair(target, operands, operands, cues):
                return computation
        target.renew()
        if computation := explain_by_scale(target, numbers, self._question_numbers):
            return computation
        target.renew()
        if computation := explain_by_pair(target, nearby, numbers, cues):
            return computation
        if computation := explain_by_pair(target, numbers, numbers, cues, is_far=True):
            return computation
        is_summed = "sum" in cues or target.is_share
        if is_summed and (computation := explain_by_sum(target, numbers, cues)):
            return computation
        return None

    @cached_property
    def _question_numbers(self) -> list[Operand]:
        question = self.index.known
        return [
            Operand(float(figure.value), figure.unit, question[figure.start : figure.end])
            for figure in self.index.known_figures[:MAX_OPERANDS]
            if isinstance(figure.value, Decimal) and figure.value and not is_year(figure)
        ]

    @cached_property
    def _totals(self) -> list[Aggregate]:
        """The sums of all numbers with one unit in a text, or of all but the first or last."""
        by_unit: dict[tuple[int, str], list[Operand]] = {}
        for figure, place in self.index.figures[:MAX_FIGURES]:
            if isinstance(figure.value, Decimal) and figure.unit and figure.unit != "/":
                by_unit.setdefault((place.source, figure.unit), []).append(
                    self._operand(figure.value, figure.unit, place)
                )
        return [
            Aggregate(
                sum(operand.value for operand in summands),
                unit,
                "sum",
                Computation(
                    format_sum([operand.text for operand in summands]),
                    "sum",
                    len(summands),
                    place=summands[0].place,
                ),
            )
            for (_source, unit), operands in by_unit.items()
            for summands in (operands, operands[1:], operands[:-1])
            if 1 < len(summands) <= MAX_OPERANDS
        ]

    @cached_property
    def _all_numbers(self) -> list[Operand]:
        """All numbers of the results, if they are few."""
        if len(self.index.figures) > MAX_FIGURES:
            return []
        operands = {
            figure.value: self._operand(figure.value, figure.unit, place)
            for figure, place in self.index.figures
            if isinstance(figure.value, Decimal) and not is_year(figure) and figure.unit != "/"
        }
        return list(operands.values()) if len(operands) <= MAX_OPERANDS else []

    def _operand(self, value: Decimal, unit: str, place: Place) -> Operand:
        text = self.index.texts[place.source][place.start : place.end]
        return Operand(float(value), unit, text, place)
