"""Dates and times that are a known duration from others, and durations between them."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from .cues import suggests_date
from .index import FigureIndex
from .operands import Computation, Context, Operand
from .parsing import Period
from .units import dimension_of, factor_between

MAX_DATES = 40


class Duration(NamedTuple):
    """How long it is between two dates or times."""

    value: float
    unit: str
    computation: Computation


class DateArithmetic:
    """Computes dates, times and durations from those of an index."""

    def __init__(self, index: FigureIndex) -> None:
        self.index = index

    def explain(self, value: date | Period, context: Context) -> Computation | None:
        """Return the date or time from which this one is a known duration away."""
        if not suggests_date(context.sentence):
            return None
        if isinstance(value, Period) and value.year and not (value.month or value.quarter):
            return self._explain_year(value.year, context)
        if isinstance(value, Period):
            return self._explain_time(value) if value.minute >= 0 else None
        days = _rounded_in("day", [*context.near, *self._known_durations])
        for start in self._known_dates:
            distance = abs((value - start).days)
            if distance in days or distance + 1 in days:
                sign = "+" if value > start else "−"
                return Computation(f"{start.isoformat()} {sign} {distance}", "days", distance)
        return None

    def _explain_year(self, year: int, context: Context) -> Computation | None:
        for years in _rounded_in("year", [*context.near, *self._known_durations]):
            if years and year - years in self.index.years:
                return Computation(f"{year - years} + {years}", "days", years)
        return None

    def _explain_time(self, value: Period) -> Computation | None:
        durations = _rounded_in("min", self._known_durations)
        for start, place in self.index.periods[:MAX_DATES]:
            distance = abs(value.minute - start.minute)
            if start.minute >= 0 and distance in durations:
                sign = "+" if value.minute > start.minute else "−"
                formula = f"{_clock(start)} {sign} {durations[distance].text}"
                return Computation(formula, place=place)
        return None

    @cached_property
    def _known_dates(self) -> list[date]:
        dates = [
            date(period.year, period.month, period.day)
            for period, _place in self.index.periods
            if period.year and period.day
        ]
        return dates[:MAX_DATES]

    @cached_property
    def _known_durations(self) -> list[Operand]:
        figures = [figure for figure, _place in self.index.figures]
        return [
            Operand(float(figure.value), figure.unit, f"{figure.value} {figure.unit}")
            for figure in [*figures, *self.index.known_figures]
            if isinstance(figure.value, Decimal) and dimension_of(figure.unit) == "time"
        ][:MAX_DATES]

    @cached_property
    def durations(self) -> list[Duration]:
        """How long it is between the dates and times of the results."""
        periods = list(dict.fromkeys(period for period, _place in self.index.periods))
        if len(periods) > MAX_DATES:
            return []
        durations = [
            duration for pair in combinations(periods, 2) for duration in _between(*pair)
        ]
        for low, high in combinations(sorted(self.index.years)[:MAX_DATES], 2):
            durations.append(
                Duration(high - low, "year", Computation(f"{high} − {low}", "time"))
            )
        return durations


def _between(first: Period, second: Period) -> Iterator[Duration]:
    """Yield the minutes, days, months and years between two periods that have them."""
    if first.minute >= 0 and second.minute >= 0:
        seconds = abs(60 * (first.minute - second.minute) + first.second - second.second)
        formula = f"{_clock(first)} – {_clock(second)}"
        yield Duration(seconds / 60, "min", Computation(formula, "time"))
    elif first.day and second.day and first.month and second.month:
        default_year = first.year or second.year or 2000
        first_year = first.year or default_year
        second_year = second.year or default_year
        try:
            first_date = date(first_year, first.month, first.day)
            second_date = date(second_year, second.month, second.day)
        except ValueError:
            return
        days = abs((first_date - second_date).days)
        formula = f"{first.month}/{first.day} – {second.month}/{second.day}"
        yield Duration(days, "day", Computation(formula, "time"))


def _rounded_in(unit: str, durations: Sequence[Operand]) -> dict[int, Operand]:
    """Return durations by how long they are in another unit."""
    return {
        round(duration.value * factor): duration
        for duration in durations
        if (factor := factor_between(duration.unit, unit)) is not None
    }


def _clock(period: Period) -> str:
    return f"{period.minute // 60}:{period.minute % 60:02d}"
