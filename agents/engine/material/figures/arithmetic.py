"""Finds the operation by which a figure follows from others.

With many values nearly every number is some difference of two, so only plausible operands are
tried, the most plausible first, and fewer of them for a figure with few digits.
"""

from collections.abc import Hashable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import chain, islice

from .counts import explain_count
from .dates import DateArithmetic
from .index import FigureIndex, Place
from .operands import (
    Computation,
    Context,
    Operand,
    Trial,
    distinct_operands,
    format_sum,
    is_year,
)
from .operations import MAX_ALIKE, column_totals, pairs, scaled, shares, sums
from .parsing import Figure, Period
from .table_values import TableValues
from .target import Target
from .units import dimension_of, is_same_unit
from .wording import cues_of

# How many results are tried for a figure, by its significant digits: more would be chance.
MAX_TRIALS = {0: 6, 1: 8, 2: 40, 3: 240, 4: 900}
MAX_OPERANDS = 14
MAX_SAVED_PAIRS = 100  # lists of them, of one answer
MAX_FIGURES = 8 * MAX_OPERANDS  # of results whose numbers are all tried


class Arithmetic:
    """Computes plausible figures from an index."""

    def __init__(self, index: FigureIndex) -> None:
        self.index = index
        self._dates = DateArithmetic(index)
        self._tables = TableValues(index.tables)
        self._pairs: dict[Hashable, list[Trial]] = {}

    def explain(self, figure: Figure, context: Context) -> Computation | None:
        """Return how a figure follows from the results, if it does."""
        if isinstance(figure.value, date | Period):
            return self._dates.explain(figure.value, context)
        if not isinstance(figure.value, Decimal):
            return None
        if count := explain_count(figure, context, self.index):
            return count
        target = Target(figure, context.sentence)
        cues = cues_of(figure, context, self.index.known)
        near = distinct_operands(context.near, figure)[:MAX_OPERANDS]
        nearby_operands = [*context.nearby, *self._question_numbers]
        nearby = distinct_operands([*near, *nearby_operands], figure)[:MAX_OPERANDS]
        units = {o.value: o.unit for o in reversed([*context.near, *nearby_operands])}
        numbers = distinct_operands(
            [o._replace(unit=o.unit or units.get(o.value, "")) for o in self._all_numbers],
            figure,
        )
        alike = [o for o in numbers if is_same_unit(o.unit, figure.unit)][:MAX_ALIKE]
        limit = MAX_TRIALS[target.kind.digits]
        for stage in (
            self._plausible_trials(target, context, cues, near, nearby),
            self._saved_pairs(alike, target, cues),
            scaled(numbers, self._question_numbers, figure.unit),
            self._further_trials(target, cues, near, nearby, numbers),
        ):
            trial = target.first_match(islice(stage, limit))
            if trial is not None:
                return trial.computation
        if "sum" in cues or target.is_share:
            neighboring = self._tables.neighboring(as_shares=figure.unit == "%")
            if trial := target.first_indexed(neighboring, limit):
                return trial.computation
        return None

    def _plausible_trials(
        self,
        target: Target,
        context: Context,
        cues: frozenset[str],
        near: Sequence[Operand],
        nearby: Sequence[Operand],
    ) -> Iterator[Trial]:
        """Yield what the sentence, its surroundings and the rows it names suggest."""
        figure = target.figure
        if len(context.column) > 1:
            yield from column_totals(context.column)
        rows = self._tables.rows_in(context.folded_sentence)
        rows = rows or self._tables.rows_in(context.folded_text)
        aggregates = list(self._tables.aggregates(context, rows))
        cued = [aggregate.trial for aggregate in aggregates if aggregate.cue in cues]
        uncued = [aggregate.trial for aggregate in aggregates if aggregate.cue not in cues]
        if not target.is_share:
            yield from cued
            yield from sums(near, cues)
            if "sum" in cues:
                yield from self._totals
        yield from pairs(near, near, target, cues)
        table_operands = self._tables.operands(rows, context.near)
        for operands in table_operands:  # of one row, and of one column
            is_short = len(operands) <= MAX_ALIKE and figure.digits > 1
            row_cues = cues | {"rate", "product"} if is_short else cues
            yield from self._saved_pairs(operands, target, row_cues)
            if "sum" in cues:
                yield from sums(operands, cues)
        totals = [trial.operand for trial in ([*cued, *uncued] if target.is_share else uncued)]
        if target.is_share:
            amounts = [*near, *chain.from_iterable(table_operands)]
            for amount in distinct_operands(amounts, figure)[: 2 * MAX_OPERANDS]:
                yield from shares(amount, totals)
        yield from pairs(near or nearby, nearby, target, cues)
        yield from pairs(near, totals[:MAX_OPERANDS], target, cues)
        if not target.is_share and figure.digits > 2:
            yield from uncued

    def _further_trials(
        self,
        target: Target,
        cues: frozenset[str],
        near: Sequence[Operand],
        nearby: Sequence[Operand],
        numbers: Sequence[Operand],
    ) -> Iterator[Trial]:
        """Yield what can be computed from all numbers of a short result."""
        yield from pairs(near, numbers, target, cues)
        yield from pairs(nearby, numbers, target, cues)
        yield from self._saved_pairs(numbers, target, cues, is_far=True)
        if "sum" in cues or target.is_share:
            yield from sums(numbers, cues)
        if dimension_of(target.figure.unit) == "time":
            yield from self._dates.durations

    def _saved_pairs(
        self,
        operands: Sequence[Operand],
        target: Target,
        cues: frozenset[str],
        *,
        is_far: bool = False,
    ) -> list[Trial]:
        """Return what two of these operands make; the same serve many figures of an answer."""
        key = (tuple(operands), target.kind, cues, is_far)
        if key not in self._pairs:
            if len(self._pairs) >= MAX_SAVED_PAIRS:
                self._pairs.clear()
            trials = pairs(operands, operands, target, cues, is_far=is_far)
            self._pairs[key] = list(islice(trials, MAX_TRIALS[target.kind.digits]))
        return self._pairs[key]

    @cached_property
    def _question_numbers(self) -> list[Operand]:
        question = self.index.known
        return [
            Operand(float(figure.value), figure.unit, question[figure.start : figure.end])
            for figure in self.index.known_figures[:MAX_OPERANDS]
            if isinstance(figure.value, Decimal) and figure.value and not is_year(figure)
        ]

    @cached_property
    def _totals(self) -> list[Trial]:
        """The sums of all numbers with one unit in a text, or of all but the first or last."""
        by_unit: dict[tuple[int, str], list[Operand]] = {}
        for figure, place in self.index.figures[:MAX_FIGURES]:
            if isinstance(figure.value, Decimal) and figure.unit and figure.unit != "/":
                by_unit.setdefault((place.source, figure.unit), []).append(
                    self._operand(figure.value, figure.unit, place)
                )
        return [
            Trial(
                sum(operand.value for operand in summands),
                unit,
                format_sum([operand.text for operand in summands]),
                "sum",
                len(summands),
                place=summands[0].place,
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
