"""The figures of a run's results, by value."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from .numerals import number_words
from .parsing import ERAS, Figure, Period, figures_in, figures_in_data
from .tables import Table, tables_in, tables_of_items
from .units import dimension_of, factor_between, factors_of

MAX_FIGURES = 3_000  # in all results
MIN_ROUNDED_DIGITS = 3  # fewer may be chance
MAX_DIGITS = 15  # of which a float has all
TOLERANCE = 1e-9
SCALED = "×"  # of a number in thousands or millions
SCALES = (1e3, 1e4, 1e6, 1e8, 1e9)
SCALED_HEAD = re.compile(
    r"million|thousand|billion|mio|\b[mk]?(?:usd|eur|gbp|jpy)_?[mk]\b"
    r"|[mk](?:usd|eur|gbp|jpy)|_[mk]\b|\(k|000s|千円|千ドル|百万|億円|万円"
    r"|千人|万人"
)
DAY_UNITS = frozenset(["日", "st", "nd", "rd", "th"])


class Place(NamedTuple):
    source: int
    start: int
    end: int


Places = tuple[Place, ...]  # the first one of each source


class Form(NamedTuple):
    """A value that a figure can stand for, and half of what its last digit stands for."""

    value: float
    margin: float
    unit: str


class Match(NamedTuple):
    """Where results have a figure; not known where if only the question or a call has it."""

    places: Places = ()
    is_rounded: bool = False


@dataclass(frozen=True)
class FigureIndex:
    """The figures of the texts that a run's tools returned.

    Texts with the same group are the items of one list. `known` is what needs no source: the
    question, and what tools were called with.
    """

    texts: Sequence[str]
    groups: Sequence[Hashable] = ()
    known: str = ""
    _spellings: dict[int, bool] = field(default_factory=dict)

    @cached_property
    def figures(self) -> list[tuple[Figure, Place]]:
        figures: list[tuple[Figure, Place]] = []
        for index, text in enumerate(self.texts):
            for figure in figures_in_data(text):
                figures.append((figure, Place(index, figure.start, figure.end)))
                if len(figures) >= MAX_FIGURES:
                    return figures
        return figures

    @property
    def is_full(self) -> bool:
        return len(self.figures) >= MAX_FIGURES

    @cached_property
    def tables(self) -> list[Table]:
        """The tables in the texts, for sums and counts."""
        if self.groups:
            return tables_of_items(self.texts, self.groups)
        return [t for i, text in enumerate(self.texts) for t in tables_in(text, i)]

    @cached_property
    def exact(self) -> dict[Any, Places]:
        """Where each value is: alone, and with its unit."""
        places: dict[Any, Places] = {}
        for figure, place in self.figures:
            _add(places, figure.value, place)
            _add(places, (figure.value, figure.unit), place)
        return places

    @cached_property
    def known_figures(self) -> list[Figure]:
        return list(figures_in(self.known, words=True))

    @cached_property
    def _numbers(self) -> list[tuple[float, str, Place | None]]:
        """All numbers in order, with their units; those of the question have no place."""
        numbers: list[tuple[float, str, Place | None]] = [
            (abs(float(figure.value)), figure.unit, place)
            for figure, place in self.figures
            if isinstance(figure.value, Decimal) and figure.unit != "/"
        ]
        numbers += [
            (abs(float(figure.value)), figure.unit, None)
            for figure in self.known_figures
            if isinstance(figure.value, Decimal)
        ]
        return sorted(numbers, key=lambda number: number[0])

    @cached_property
    def _values(self) -> list[float]:
        return [number for number, _unit, _place in self._numbers]

    @cached_property
    def periods(self) -> list[tuple[Period, Place | None]]:
        """All dates and times."""
        periods = [
            (_period(figure.value), place)
            for figure, place in self.figures
            if isinstance(figure.value, date | Period)
        ]
        known = [
            (_period(figure.value), None)
            for figure in self.known_figures
            if isinstance(figure.value, date | Period)
        ]
        noon = Period(minute=720)
        is_noon = "noon" in self.words.replace("afternoon", "") or "正午" in self.words
        return [*periods, *known, *([(noon, None)] if is_noon else [])]

    @cached_property
    def years(self) -> frozenset[int]:
        years = {period.year for period, _place in self.periods if period.year}
        numbers = self._values[
            bisect_left(self._values, 1800) : bisect_right(self._values, 2200)
        ]
        return frozenset(years | {int(number) for number in numbers if number == int(number)})

    @cached_property
    def words(self) -> str:
        """All texts, for codes and words."""
        return "\n".join([*self.texts, self.known]).casefold()

    def find(self, figure: Figure) -> Match | None:
        """Return where results have this figure; None if neither they nor the question do."""
        value = figure.value
        if isinstance(value, str):
            return self._find_code(figure)
        if isinstance(value, date | Period):
            places = self.exact.get(value, ())
            return Match(places) if places else self._find_period(_period(value))
        places = self.exact.get((value, figure.unit), ()) if figure.unit else ()
        if places:
            return Match(places)
        if not figure.is_trivial:
            places = self._exact_forms(figure)
            if not places and figure.unit in DAY_UNITS and value in self.days:
                return Match()
            return Match(places) if places else self._find_number(figure)
        # It may be chance, so it isn't cited.
        is_day = figure.unit in DAY_UNITS and value in self.days
        is_known = is_day or value in self.years or self._find_number(figure) is not None
        return Match() if is_known else None

    def _exact_forms(self, figure: Figure) -> Places:
        for value in (figure.value, -figure.value if isinstance(figure.value, Decimal) else 0):
            if not dimension_of(figure.unit) and (places := self.exact.get(value)):
                return places
            if dimension_of(figure.unit) and (places := self.exact.get((value, ""))):
                return places
        return ()

    def _find_code(self, figure: Figure) -> Match | None:
        if places := self.exact.get(figure.value):
            return Match(places)
        code = str(figure.value).replace(" ", "").casefold()
        if code in self.words:
            return Match()
        digits = "".join(filter(str.isdigit, code))
        if len(digits) >= 7 and digits in self._digits:
            return Match()
        if figure.unit == "/" and all(
            Decimal(n) in self.exact for n in re.findall(r"\d+", code)
        ):
            return Match()
        return None

    @cached_property
    def _digits(self) -> str:
        return "".join(c for c in self.words if c.isdigit() or c == "\n")

    def _find_period(self, period: Period) -> Match | None:
        matches = [place for known, place in self.periods if self._agree(period, known)]
        if matches:
            return Match(tuple(place for place in matches if place is not None)[:1])
        if period.minute >= 0:  # hours can be numbers of their own
            hour = period.minute // 60
            hours = {Decimal(hour), Decimal((hour + 12) % 24)}
            is_hour = period.minute % 60 == 0 and not hours.isdisjoint(self.exact)
            return Match() if is_hour else None
        is_year = not (period.month or period.quarter)
        return Match() if is_year and period.year in self.years else None

    @cached_property
    def has_scaled_heads(self) -> bool:
        """Whether some numbers are in thousands or millions, as the words around them say."""
        return SCALED_HEAD.search(self.words) is not None

    @cached_property
    def days(self) -> frozenset[int]:
        """The days of the month."""
        return frozenset(period.day for period, _place in self.periods if period.day)

    def _agree(self, period: Period, known: Period) -> bool:
        """Whether a known date says all that this one says, or all but the year."""
        if period.minute >= 0 or known.minute >= 0:
            # A clock of twelve hours can leave out which half of the day.
            is_either = min(period.minute, known.minute) >= 0
            is_second = period.second == known.second or not (period.second and known.second)
            return is_either and is_second and abs(period.minute - known.minute) in {0, 720}
        if period.year and known.year and period.year != known.year:
            return False
        if period.year and not known.year and period.year not in self.years:
            return False
        if period.quarter > 10:
            half = 11 + (known.month > 6) if known.month else known.quarter
            return period.quarter == half
        if period.quarter:
            quarter = known.quarter or (known.month + 2) // 3
            return period.quarter == quarter
        if not period.month:
            return bool(known.year)
        return (known.month or 0) == period.month and (
            not period.day or period.day == known.day
        )

    def _find_number(self, figure: Figure) -> Match | None:
        """Return where it is in another unit, or rounded."""
        rounded: dict[int, Place] = {}
        is_known = False
        for form in forms_of(figure):
            exact_margin = TOLERANCE * max(1.0, form.value)
            for number, unit, place in self.near(form.value, max(form.margin, exact_margin)):
                if form.unit == SCALED and (unit or not self.has_scaled_heads):
                    continue
                is_year = not unit and 1900 <= number <= 2100 and form.unit.startswith("×")
                if is_year or not _is_compatible(form.unit, unit):
                    continue
                is_exact = abs(number - form.value) <= exact_margin
                if is_exact and figure.digits >= 2 and place is not None:
                    return Match((place,))
                is_known = True
                if figure.digits >= MIN_ROUNDED_DIGITS and place is not None:
                    rounded.setdefault(place.source, place)
        if is_known:
            return Match(tuple(rounded.values()), is_rounded=True)
        is_known = figure.unit == "年" and figure.value in self._era_years
        if isinstance(figure.value, Decimal) and dimension_of(figure.unit) == "time":
            is_known = is_known or self._has_clock(figure.value, figure.unit)
        return Match() if is_known or self.has_word(figure) else None

    def _has_clock(self, value: Decimal, unit: str) -> bool:
        """Whether a time is this long: 2:18:44 for 2時間18分44秒."""
        seconds = float(value) * (factor_between(unit, "s") or 0.0)
        return any(
            period.second and seconds == 60 * period.minute + period.second
            for period, _place in self.periods
        )

    @cached_property
    def _era_years(self) -> frozenset[int]:
        """The years of the eras that are known: 6 for 2024 with 令和."""
        return frozenset(
            year - base
            for era, base in ERAS.items()
            if era in self.words
            for year in self.years
        )

    def near(self, value: float, margin: float) -> Iterator[tuple[float, str, Place | None]]:
        """Yield the numbers that round to this value."""
        low = bisect_left(self._values, value - margin * (1 + 1e-9))
        high = bisect_right(self._values, value + margin * (1 + 1e-9))
        yield from self._numbers[low : min(high, low + 20)]

    def has_word(self, figure: Figure) -> bool:
        """Whether a text has a small number in words."""
        value = figure.value
        if not isinstance(value, Decimal) or not 0 <= value <= 20 or value != int(value):
            return False
        number = int(value)
        if number not in self._spellings:
            words = number_words(number)
            padded = self.padded_words
            self._spellings[number] = any(f" {word} " in padded for word in words) or (
                number in self._kanji_numbers
            )
        return self._spellings[number]

    @cached_property
    def _kanji_numbers(self) -> frozenset[int]:
        figures = (
            f for text in [*self.texts, self.known] for f in figures_in(text) if f.is_word
        )
        return frozenset(int(f.value) for f in figures if isinstance(f.value, Decimal))

    @cached_property
    def padded_words(self) -> str:
        letters = "".join(c if c.isalpha() else " " for c in self.words)
        return f" {letters} "


def forms_of(figure: Figure) -> Iterator[Form]:
    """Yield the values that a figure can stand for in other units."""
    if not isinstance(figure.value, Decimal):
        return
    value = abs(float(figure.value))
    margin = figure.step / 2 if figure.digits <= MAX_DIGITS else 0.0
    if figure.digits < 2 and not figure.decimals and figure.step == 1:
        margin = 0.0 if not dimension_of(figure.unit) else margin
    yield Form(value, margin, figure.unit)
    if figure.unit == "%":
        yield Form(value / 100, margin / 100, "")
    elif figure.decimals == 3 and figure.digits <= 6 and value:
        yield Form(value * 1_000, 0.0, figure.unit)  # 1.240 with a European separator
    if figure.step >= 1_000 and figure.digits >= 2:
        for scale in SCALES:
            yield Form(value / scale, margin / scale, SCALED)
    if dimension_of(figure.unit):
        for factor in factors_of(figure.unit):
            yield Form(value * factor, margin * factor, f"×{figure.unit}")


def _is_compatible(unit: str, other: str) -> bool:
    """Whether a number with one unit can be one with the other; converted ones start with ×."""
    if unit.startswith("×"):
        return not other or (
            dimension_of(unit[1:]) == dimension_of(other) and unit[1:] != other
        )
    dimension = dimension_of(unit)
    other_dimension = dimension_of(other)
    if dimension and other_dimension:
        return dimension == other_dimension and factor_between(unit, other) == 1.0
    return True


def _period(value: Any) -> Period:
    if isinstance(value, Period):
        return value
    assert isinstance(value, date)
    return Period(value.year, value.month, value.day)


def _add(places: dict[Any, Places], key: Any, place: Place) -> None:
    known = places.get(key, ())
    if not known or known[-1].source != place.source:
        places[key] = (*known, place)
