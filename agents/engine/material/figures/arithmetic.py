"""Finds the operation by which a figure follows from others.

With many values nearly every number is some difference of two, so only plausible operands are
tried, the most plausible first, and fewer of them for a figure with few digits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import combinations, islice
from typing import NamedTuple

from .index import TOLERANCE, FigureIndex, Form, Place, forms_of
from .parsing import Figure, Period
from .tables import Column, Table
from .units import dimension_of, factor_between, is_alike, is_same_unit

# How many results are tried for a figure, by its significant digits: more would be chance.
MAX_TRIALS = {0: 6, 1: 8, 2: 40, 3: 240, 4: 900}
MAX_OPERANDS = 14
MAX_ALIKE = 6
MAX_CUED_CHARS = 300
MAX_LABELED_ROWS = 12
MAX_DATES = 40
MAX_RUN_ROWS = 24
MAX_GROUPS = 200
CUE_CHARS = 70  # on each side of the figure
CLOSE = {
    "sum": (
        r"total|sum|combin|together|altogether|in all|overall|both|plus|across"
        r"|aggregate|entire|whole"
        r"|cumulativ|grand|all (?:of|the|\w+)|between them|合計|総|計|合わせ"
        r"|あわせ|全体|累計|トータル|全部|のべ|延べ|年間|半期|通期|四半期"
    ),
    "difference": (
        r"more|less|fewer|differ|gap|increas|decreas|grew|grow|rose|rise|fell"
        r"|fall|drop|declin|higher|lower|above"
        r"|below|than|remain|left|sav(?:e|ing)|ahead|behind|margin|spread|chang"
        r"|up\b|down\b|gain|lost|loss|short|exceed"
        r"|longer|later|earlier|older|younger|surplus|deficit|profit|net|cheaper"
        r"|faster|slower|discount|away|range|extra|heav|lighter|bigger|smaller"
        r"|wider|taller|thick|thin|additional|under|over"
        r"|差|増|減|上回|下回|多|少|高|低|残|伸|上昇|下落|短|長|早|遅|安|黒字"
        r"|赤字|利益|引|余|不足|超|改善|悪化|縮|離|開き|マイナス|プラス"
    ),
    "average": r"averag|mean\b|typical|平均",
    "rate": (
        r"every|ratio|rate\b|P/E|multiple|密度|率|比|averag|mean\b|\bper\b|each"
        r"|\ba (?:day|week|month|year)|typical|平均|あたり|当たり|ごと|毎"
        r"|1[人件日台個]"
    ),
    "product": (
        r"total|make|need|use|take|leave|pay|require|cost|each|per\b|times|at\b"
        r"|for\b|come|amount|worth|annual|year|month|×|合計|計|円|総|年間|月間"
        r"|分|あたり|費用|代金|金額"
    ),
    "middle": r"median|中央値",
    "year": r"year|annual|年",
}
CUES = {name: re.compile(words, re.IGNORECASE) for name, words in CLOSE.items()}
ABOVE = re.compile(
    r"(?:over|above|more than|exceed\w*|at least|greater than)\s*\S{0,3}$"
    r"|^\S{0,6}\s?(?:以上|超|を上回|を超|より多|or more|\+)"
)
BELOW = re.compile(
    r"(?:under|below|less than|fewer than|at most|up to)\s*\S{0,3}$"
    r"|^\S{0,6}\s?(?:以下|未満|を下回|より少|or less|or fewer)"
)
HEDGE = re.compile(
    r"(?:about|around|roughly|approx\w*\.?|some|circa|close to|~|≈|約"
    r"|およそ|おおよそ|ほぼ|ざっと)"
    r"\s?[$€£¥]?$",
    re.IGNORECASE,
)
HEDGED_AFTER = re.compile(r"^\s?[^\s\d]{0,3}(?:程度|前後|ほど|くらい|ぐらい|or so)")
BEYOND = re.compile(
    r"(?:over|more than|under|up to|at least|less than|nearly|almost|just (?:over|under))"
    r"\s?[$€£¥]?$",
    re.IGNORECASE,
)
BEYOND_AFTER = re.compile(r"^\s?[^\s\d]{0,3}(?:余り|あまり|余|弱|強|超|以上|近く|台|\+)")
DATE_CUE = re.compile(
    r"due|deadline|\bby\b|until|till|expir|end|later|after|before|between"
    r"|latest|renew|from|arriv|finish|start"
    r"|まで|期限|期日|締|以内|後|前|満了|終了|到着|開始",
    re.IGNORECASE,
)
RATIO_UNITS = {"x", "倍", "time", "fold"}
COUNTED_DIMENSIONS = {"", "age"}


class Operand(NamedTuple):
    """A figure that another can be computed from."""

    value: float
    unit: str
    text: str
    place: Place | None = None


class Computation(NamedTuple):
    """How a figure follows from others: a formula, or a `kind` over the rows of a result."""

    formula: str
    kind: str = ""  # sum, average, count, …
    size: int = 0  # of rows
    name: str = ""  # of their column
    place: Place | None = None


@dataclass
class Context:
    """What a figure is said with: its sentence, and the figures around it."""

    sentence: str
    around: str = ""  # the block with the sentence, and its headings
    near: Sequence[Operand] = ()  # in the sentence or row
    nearby: Sequence[Operand] = ()  # in the block and the one before it
    column: Sequence[Operand] = ()  # above it in the answer's table
    codes: int = 0  # in the sentence
    counts: frozenset[int] = frozenset()  # items of the answer's lists and rows of its tables

    @cached_property
    def words(self) -> str:
        return self.sentence.casefold()

    @cached_property
    def all_words(self) -> str:
        return f"{self.around}\n{self.sentence}".casefold()


class _Trial(NamedTuple):
    value: float
    unit: str
    formula: str
    kind: str = ""
    size: int = 0
    name: str = ""
    place: Place | None = None


class Arithmetic:
    """Computes plausible figures from an index."""

    def __init__(self, index: FigureIndex) -> None:
        self.index = index
        self._rows_of_words: dict[str, list[tuple[Table, int]]] = {}

    def explain(self, figure: Figure, context: Context) -> Computation | None:
        """Return how a figure follows from the results, if it does."""
        if isinstance(figure.value, date | Period):
            return self._explain_date(figure.value, context)
        context = replace(context, nearby=[*context.nearby, *self._asked_numbers])
        if not isinstance(figure.value, Decimal):
            return None
        start = max(0, figure.start - CUE_CHARS)
        words = context.sentence[start : figure.end + CUE_CHARS]
        if not context.sentence or len(context.sentence) < 30:
            words = f"{context.around} {words}"
        cues = {name for name, cue in CUES.items() if cue.search(words)}
        if count := self._count(figure, context):
            return count
        forms = hedged_forms(figure, context.sentence)
        if CUES["product"].search(self.index.known[:MAX_CUED_CHARS]):
            cues.add("product")
        limit = MAX_TRIALS[min(4, figure.digits)]
        few = self._few(figure, [*context.near, *context.nearby])
        alike = [operand for operand in few if is_same_unit(operand.unit, figure.unit)]
        for stage in (
            self._trials(figure, context, cues),
            _pairs(alike[:MAX_ALIKE], alike[:MAX_ALIKE], figure, cues),
            self._scaled(few, figure),
            self._further_trials(figure, context, cues, few),
        ):
            for trial in islice(stage, limit):
                if _fits(trial, forms):
                    return Computation(*trial[2:])
        return None

    # Counts

    def _count(self, figure: Figure, context: Context) -> Computation | None:
        """Return which rows or items a whole number counts."""
        value = figure.value
        assert isinstance(value, Decimal)
        dimension = dimension_of(figure.unit)
        if value != int(value) or dimension not in {*COUNTED_DIMENSIONS, "time"}:
            return None
        number = int(value)
        if dimension == "time":  # rows for days or months
            names = "".join(name for table in self.index.tables for name in table.names)
            if figure.unit not in names.lower():
                return None
            sizes = {len(table.rows) for table in self.index.tables}
            return Computation("", "count", number) if number in sizes else None
        values = {operand.value for operand in context.near}
        is_listed = number in {len(values) if len(values) > 2 else 0, context.codes}
        if number in context.counts or is_listed:
            return Computation("", "count", number)
        for table in self.index.tables:
            place = Place(table.source, 0, 0)
            if number == len(table.rows) or (number > 1 and number in table.distinct_counts):
                return Computation("", "count", number, place=place)
            for label, rows in islice(table.groups.items(), MAX_GROUPS):
                if len(rows) == number and label in context.all_words:
                    return Computation("", "count", number, label, place)
                if len(table.rows) - len(rows) == number and label in context.all_words:
                    return Computation(f"{len(table.rows)} − {len(rows)}", place=place)
            if self._is_count_beyond(number, table, context):
                return Computation("", "count", number, place=place)
        if number > 1 and number == len(self.index.texts):
            return Computation("", "count", number)
        return None

    def _is_count_beyond(self, number: int, table: Table, context: Context) -> bool:
        """Whether so many rows are above or below a limit that the sentence names."""
        for operand in context.near[:MAX_OPERANDS]:
            start = context.sentence.find(operand.text)
            end = start + len(operand.text)
            before = context.sentence[max(0, start - 24) : start].lower()
            is_above = bool(
                ABOVE.search(before) or ABOVE.search(context.sentence[end : end + 16])
            )
            is_below = bool(
                BELOW.search(before) or BELOW.search(context.sentence[end : end + 16])
            )
            for column in table.columns if is_above or is_below else ():
                values = column.values.values()
                limit = operand.value
                counts = {
                    sum(v > limit for v in values) if is_above else -1,
                    sum(v >= limit for v in values) if is_above else -1,
                    sum(v < limit for v in values) if is_below else -1,
                    sum(v <= limit for v in values) if is_below else -1,
                }
                if number in counts:
                    return True
        return False

    # Numbers

    def _trials(self, figure: Figure, context: Context, cues: set[str]) -> Iterator[_Trial]:
        """Yield what can be computed, the most plausible first."""
        near = _distinct(context.near, figure)[:MAX_OPERANDS]
        if len(context.column) > 1:
            yield from _column_totals(context.column)
        is_share = figure.unit == "%" or figure.unit in RATIO_UNITS
        rows = self._rows_in(context.words) or self._rows_in(context.all_words)
        aggregates = list(self._aggregates(context, cues, rows))
        if not is_share:
            yield from (trial for trial, is_cued in aggregates if is_cued)
            yield from _sums(near, cues)
            if "sum" in cues:
                yield from self._totals
        yield from _pairs(near, near, figure, cues)
        row_values = self._row_operands(rows, context.near)
        for operands in row_values:  # of one row, and of one column
            is_short = len(operands) <= MAX_ALIKE and figure.digits > 1
            row_cues = cues | {"rate", "product"} if is_short else cues
            yield from _pairs(operands, operands, figure, row_cues)
            if "sum" in cues:
                yield from _sums(operands, cues)
        if is_share:
            wholes = [_operand(trial) for trial, _is_cued in aggregates]
            parts = [*near, *(operand for operands in row_values for operand in operands)]
            for part in _distinct(parts, figure)[: 2 * MAX_OPERANDS]:
                yield from _shares(part, wholes)
        nearby = _distinct([*near, *context.nearby], figure)[:MAX_OPERANDS]
        yield from _pairs(near or nearby, nearby, figure, cues)
        if not near and not row_values:
            yield from _pairs(nearby, nearby, figure, cues)
        mixed = [operand for operands in row_values for operand in operands][:MAX_OPERANDS]
        yield from _pairs(near, mixed, figure, cues)
        wholes = [_operand(trial) for trial, is_cued in aggregates if not is_cued or is_share]
        yield from _pairs(near, wholes[:MAX_OPERANDS], figure, cues)
        if not is_share and figure.digits > 2:
            yield from (trial for trial, is_cued in aggregates if not is_cued)

    def _further_trials(
        self, figure: Figure, context: Context, cues: set[str], few: Sequence[Operand]
    ) -> Iterator[_Trial]:
        """Yield what can be computed from all numbers of a short result."""
        near = _distinct(context.near, figure)[:MAX_OPERANDS]
        nearby = _distinct([*near, *context.nearby], figure)[:MAX_OPERANDS]
        is_share = figure.unit == "%" or figure.unit in RATIO_UNITS
        yield from _pairs(near, few, figure, cues)
        yield from _pairs(nearby, few, figure, cues)
        yield from _pairs(few, few, figure, cues, is_far=True)
        if "sum" in cues or is_share:
            yield from _sums(few, cues)
            yield from self._runs(figure)
        if self._has_durations(figure):
            yield from self._durations(context)

    def _rows_in(self, words: str) -> list[tuple[Table, int]]:
        """Return the rows whose words are in a sentence."""
        if words not in self._rows_of_words:
            self._rows_of_words[words] = [
                (table, index)
                for table in self.index.tables
                for index, labels in enumerate(table.labels)
                if any(label in words for label in labels)
            ][: 4 * MAX_LABELED_ROWS]
        return self._rows_of_words[words]

    def _row_operands(
        self, rows: Sequence[tuple[Table, int]], near: Sequence[Operand]
    ) -> list[list[Operand]]:
        """Return the values of each row, and those of each column in these rows."""
        units = {operand.value: operand.unit for operand in near}
        if len(rows) > MAX_LABELED_ROWS:
            return []
        operands: list[list[Operand]] = []
        for table, index in rows:
            columns = [column for column in table.columns if index in column.values]
            operands.append([_cell(table, column, index, units) for column in columns])
        tables = {id(table): table for table, _index in rows}
        for table in tables.values():
            indexes = [index for other, index in rows if other is table]
            operands += [
                [_cell(table, column, i, units) for i in indexes if i in column.values]
                for column in table.columns
                if len(indexes) > 1
            ]
        return [values for values in operands if len(values) > 1]

    def _aggregates(
        self, context: Context, cues: set[str], rows: Sequence[tuple[Table, int]]
    ) -> Iterator[tuple[_Trial, bool]]:
        """Yield sums, averages and ranges of columns, and whether the sentence"
        " speaks of them."""
        for table in self.index.tables:
            named = [i for other, i in rows if other is table]
            for column in table.columns:
                parts = {tuple(column.values)}
                if 1 < len(named) < len(column.values):
                    parts.add(tuple(i for i in named if i in column.values))
                for label, members in islice(table.groups.items(), MAX_GROUPS):
                    if 1 < len(members) < len(table.rows) and label in context.all_words:
                        parts.add(tuple(i for i in members if i in column.values))
                for part in sorted(parts, key=len, reverse=True):
                    yield from _aggregates_of(table, column, part, cues)

    def _few(self, figure: Figure, near: Sequence[Operand]) -> list[Operand]:
        """Return all numbers of the results, if they are few; `near` know their units."""
        units = {operand.value: operand.unit for operand in reversed(near)}
        operands = [
            operand._replace(unit=operand.unit or units.get(operand.value, ""))
            for operand in self._all_numbers
        ]
        return _distinct(operands, figure)

    @cached_property
    def _asked_numbers(self) -> list[Operand]:
        return [
            Operand(
                float(figure.value), figure.unit, self.index.known[figure.start : figure.end]
            )
            for figure in self.index.known_figures[:MAX_OPERANDS]
            if isinstance(figure.value, Decimal)
            and figure.value
            and not (figure.is_trivial and 1900 <= figure.value <= 2100)
        ]

    def _scaled(self, operands: Sequence[Operand], figure: Figure) -> Iterator[_Trial]:
        """Yield what belongs to an amount that the question names, such as 10 servings."""
        for asked in self._asked_numbers:
            bases = [
                o
                for o in operands
                if not o.unit or not asked.unit or is_same_unit(o.unit, asked.unit)
            ]
            for base in bases:
                for part in operands:
                    if part is not base and is_same_unit(part.unit, figure.unit):
                        text = f"{part.text} × {asked.text} ÷ {base.text}"
                        value = part.value * asked.value / base.value
                        yield _Trial(value, part.unit, text, place=part.place)

    @cached_property
    def _totals(self) -> list[_Trial]:
        """The sums of all numbers with one unit in a text."""
        by_unit: dict[tuple[int, str], list[Operand]] = {}
        for other, place in self.index.figures[: 8 * MAX_OPERANDS]:
            if isinstance(other.value, Decimal) and other.unit and other.unit != "/":
                operand = Operand(float(other.value), other.unit, self._text(place), place)
                by_unit.setdefault((place.source, other.unit), []).append(operand)
        return [
            _Trial(
                sum(o.value for o in part),
                unit,
                _listed([o.text for o in part], " + "),
                "sum",
                len(part),
                place=part[0].place,
            )
            for (_source, unit), operands in by_unit.items()
            for part in (operands, operands[1:], operands[:-1])
            if 1 < len(part) <= MAX_OPERANDS
        ]

    @cached_property
    def _all_numbers(self) -> list[Operand]:
        if len(self.index.figures) > 8 * MAX_OPERANDS:
            return []
        operands = {
            float(other.value): Operand(
                float(other.value), other.unit, self._text(place), place
            )
            for other, place in self.index.figures
            if isinstance(other.value, Decimal)
            and not (other.is_trivial and 1900 <= other.value <= 2100)
            and other.unit != "/"
        }
        return list(operands.values()) if len(operands) <= MAX_OPERANDS else []

    def _text(self, place: Place) -> str:
        return self.index.texts[place.source][place.start : place.end]

    def _runs(self, figure: Figure) -> Iterator[_Trial]:
        """Yield the sums of neighboring rows and of the largest ones, and their shares."""
        for table in self.index.tables:
            for column in table.columns:
                values = list(column.values.values())
                if len(values) > MAX_RUN_ROWS or not column.is_additive:
                    continue
                place = Place(table.source, 0, 0)
                total = column.total
                ordered = sorted(values, reverse=True)
                sums = [(sum(ordered[:n]), n) for n in range(2, min(6, len(values)))]
                sums += [
                    (sum(values[i:j]), j - i)
                    for i, j in combinations(range(len(values) + 1), 2)
                    if 1 < j - i < len(values)
                ]
                for value, count in sums:
                    if figure.unit == "%" and total:
                        text = f"{_written(value)} ÷ {_written(total)}"
                        yield _Trial(100 * value / total, "%", text, place=place)
                    else:
                        yield _Trial(value, column.unit, "", "sum", count, column.name, place)

    # Dates

    def _explain_date(self, value: date | Period, context: Context) -> Computation | None:
        """Return the date from which this one is so many days away."""
        if not DATE_CUE.search(context.sentence):
            return None
        if isinstance(value, Period):
            return self._explain_time(value)
        days = {
            round(operand.value * factor)
            for operand in [*context.near, *self._durations_known]
            if (factor := factor_between(operand.unit, "day")) is not None
        }
        dates = [
            date(p.year, p.month, p.day) for p, _ in self.index.periods if p.year and p.day
        ]
        months = {
            round(operand.value * factor)
            for operand in self._durations_known
            if operand.unit in {"month", "か月", "ヶ月", "カ月", "year", "年", "年間"}
            and (factor := factor_between(operand.unit, "month")) is not None
        }
        for known in dates[:MAX_DATES]:
            distance = abs((value - known).days)
            if distance in days or distance + 1 in days:
                sign = "+" if value > known else "−"
                return Computation(f"{known.isoformat()} {sign} {distance}", "days", distance)
            apart = abs(12 * (value.year - known.year) + value.month - known.month)
            if apart in months and abs(value.day - known.day) in {0, 1, 30, 29, 27}:
                return Computation(f"{known.isoformat()} + {apart}", "months", apart)
        return None

    def _explain_time(self, value: Period) -> Computation | None:
        """Return the time of day from which this one is so many minutes away."""
        minutes = {
            round(operand.value * factor): operand.text
            for operand in self._durations_known
            if (factor := factor_between(operand.unit, "min")) is not None
        }
        for known, place in self.index.periods[:MAX_DATES] if value.minute >= 0 else ():
            distance = abs(value.minute - known.minute)
            if known.minute >= 0 and distance in minutes:
                sign = "+" if value.minute > known.minute else "−"
                formula = f"{_clock(known)} {sign} {minutes[distance]}"
                return Computation(formula, place=place)
        return None

    @cached_property
    def _durations_known(self) -> list[Operand]:
        return [
            Operand(float(figure.value), figure.unit, f"{figure.value} {figure.unit}")
            for figure in [*(f for f, _ in self.index.figures), *self.index.known_figures]
            if isinstance(figure.value, Decimal) and dimension_of(figure.unit) == "time"
        ][:MAX_DATES]

    def _has_durations(self, figure: Figure) -> bool:
        return dimension_of(figure.unit) == "time"

    def _durations(self, context: Context) -> Iterator[_Trial]:
        """Yield how long it is between the dates and times of the results."""
        periods = list(dict.fromkeys(period for period, _place in self.index.periods))
        if len(periods) > MAX_DATES:
            return
        for first, second in combinations(periods, 2):
            if first.minute >= 0 and second.minute >= 0:
                minutes = abs(first.minute - second.minute)
                text = f"{_clock(first)} – {_clock(second)}"
                yield _Trial(minutes, "min", text, "time")
                yield _Trial(1_440 - minutes, "min", text, "time")
            elif first.day and second.day and first.month and second.month:
                year = first.year or second.year or 2000
                try:
                    days = abs(
                        (
                            date(first.year or year, first.month, first.day)
                            - date(second.year or year, second.month, second.day)
                        ).days
                    )
                except ValueError:
                    continue
                text = f"{first.month}/{first.day} – {second.month}/{second.day}"
                yield _Trial(days, "day", text, "time")
                yield _Trial(days + 1, "day", text, "time")
                if days > 50:
                    months = (
                        12 * ((first.year or year) - (second.year or year))
                        + first.month
                        - second.month
                    )
                    yield _Trial(abs(months), "month", text, "time")
            if first.year and second.year and first.year != second.year:
                years = abs(first.year - second.year)
                yield _Trial(years, "year", f"{first.year} – {second.year}", "time")
                if first.month and second.month:
                    months = abs(12 * (first.year - second.year) + first.month - second.month)
                    yield _Trial(months // 12, "year", f"{first.year} – {second.year}", "time")
        years_known = sorted(self.index.years)[:MAX_DATES]
        for low, high in combinations(years_known, 2):
            yield _Trial(high - low, "year", f"{high} − {low}", "time")


def hedged_forms(figure: Figure, sentence: str) -> list[Form]:
    """Return the values that a figure can stand for; after "about", zeros are no digits."""
    forms = list(forms_of(figure))
    before = sentence[max(0, figure.start - 14) : figure.start]
    after = sentence[figure.end : figure.end + 8]
    is_about = HEDGE.search(before) or HEDGED_AFTER.search(after)
    is_beyond = BEYOND.search(before) or BEYOND_AFTER.search(after)
    if not (is_about or is_beyond) or not forms or not forms[0].value or figure.is_word:
        return forms
    value = forms[0].value
    step = figure.step
    while (
        step < value and abs(round(value / (10 * step)) * 10 * step - value) < TOLERANCE * value
    ):
        step *= 10
    margin = min(step if is_beyond else step / 2, 0.1 * value) / value
    return [
        Form(form.value, max(form.margin, margin * form.value), form.unit) for form in forms
    ]


def _fits(trial: _Trial, forms: Sequence[Form]) -> bool:
    value = abs(trial.value)
    for form in forms:
        unit = form.unit.removeprefix("×")
        if form.unit.startswith("×") or (form.unit == "" and forms[0].unit == "%"):
            continue
        candidate = value
        if trial.unit and unit and dimension_of(unit) and dimension_of(trial.unit):
            factor = factor_between(trial.unit, unit)
            if factor is None:
                return False
            candidate = value * factor
        elif unit == "%" and trial.unit != "%":
            if trial.unit:
                return False
        elif trial.unit == "%" and unit != "%":
            return False
        if abs(candidate - form.value) <= form.margin * (1 + TOLERANCE) + TOLERANCE:
            return True
    return False


def _aggregates_of(
    table: Table, column: Column, part: Sequence[int], cues: set[str]
) -> Iterator[tuple[_Trial, bool]]:
    values = [column.values[index] for index in part]
    if len(values) < 2 or not column.is_additive:
        return
    place = Place(table.source, 0, 0)
    size = len(values)
    name = column.name
    total = sum(values)
    unit = column.unit
    yield _Trial(total, unit, _listed(values, " + "), "sum", size, name, place), "sum" in cues
    average = total / len(values)
    yield _Trial(average, unit, "", "average", size, name, place), "average" in cues
    spread = max(values) - min(values)
    formula = f"{_written(max(values))} − {_written(min(values))}"
    yield _Trial(spread, unit, formula, place=place), "difference" in cues
    if "middle" in cues:
        ordered = sorted(values)
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        yield _Trial(middle, unit, "", "median", size, name, place), True


def _column_totals(column: Sequence[Operand]) -> Iterator[_Trial]:
    """Yield what can be below the values of a column: their sum or their average."""
    total = sum(operand.value for operand in column)
    unit = column[-1].unit
    text = _listed([operand.text for operand in column], " + ")
    size = len(column)
    yield _Trial(total, unit, text, "sum", size, place=column[0].place)
    yield _Trial(total / size, unit, "", "average", size, place=column[0].place)


def _sums(operands: Sequence[Operand], cues: set[str]) -> Iterator[_Trial]:
    """Yield the sums of all operands and of neighboring ones."""
    size = len(operands)
    runs = [(0, size), *((i, j) for i, j in combinations(range(size + 1), 2) if j - i > 2)]
    for i, j in dict.fromkeys(runs):
        part = operands[i:j]
        units = {operand.unit for operand in part if dimension_of(operand.unit)}
        if len(part) < 3 or len(units) > 1:
            continue
        yield _Trial(
            sum(operand.value for operand in part),
            next(iter(units), ""),
            _listed([operand.text for operand in part], " + "),
            place=part[0].place,
        )
        if "average" in cues:
            yield _Trial(
                sum(operand.value for operand in part) / len(part),
                next(iter(units), ""),
                f"({_listed([operand.text for operand in part], ' + ')}) ÷ {len(part)}",
                place=part[0].place,
            )


def _pairs(
    first: Sequence[Operand],
    second: Sequence[Operand],
    figure: Figure,
    cues: set[str],
    *,
    is_far: bool = False,
) -> Iterator[_Trial]:
    """Yield what an operation makes of two operands."""
    is_share = figure.unit == "%" or figure.unit in RATIO_UNITS
    is_sentence = first is second and figure.digits > 1 and len(first) <= MAX_ALIKE
    seen: set[tuple[float, float]] = set()
    for a in first:
        for b in second:
            pair = (min(a.value, b.value), max(a.value, b.value))
            if a == b or pair in seen or a.value == b.value:
                continue
            seen.add(pair)
            high, low = (a, b) if a.value >= b.value else (b, a)
            place = high.place or low.place
            is_similar = is_alike(a.unit, b.unit)
            unit = a.unit or b.unit
            # Of one certain unit, three digits are no chance.
            is_plain = figure.digits > 3 or (
                figure.digits > 2 and a.unit == b.unit == figure.unit != ""
            )
            if is_similar and (not is_share or unit in {"%", figure.unit}):
                text = f"{high.text} − {low.text}"
                if "difference" in cues or is_plain:
                    yield _Trial(high.value - low.value, unit, text, place=place)
                if "sum" in cues or is_plain or (is_sentence and a.unit == b.unit):
                    yield _Trial(a.value + b.value, unit, f"{a.text} + {b.text}", place=place)
                if "average" in cues:
                    text = f"({a.text} + {b.text}) ÷ 2"
                    yield _Trial((a.value + b.value) / 2, unit, text, place=place)
            if is_share:
                yield from _ratios(high, low, figure, place)
            else:
                yield from _products(high, low, figure, cues, place, is_far=is_far)


def _ratios(
    high: Operand, low: Operand, figure: Figure, place: Place | None
) -> Iterator[_Trial]:
    factor = factor_between(low.unit, high.unit)
    if factor is not None and factor != 1.0:
        low = low._replace(value=low.value * factor)
        high, low = (high, low) if high.value >= low.value else (low, high)
    is_similar = is_alike(high.unit, low.unit) or factor is not None
    if not is_similar or not low.value or high.unit == "%":
        return
    if figure.unit == "%":
        yield _Trial(
            100 * low.value / high.value, "%", f"{low.text} ÷ {high.text}", place=place
        )
        change = 100 * (high.value - low.value)
        text = f"({high.text} − {low.text})"
        yield _Trial(change / low.value, "%", f"{text} ÷ {low.text}", place=place)
        yield _Trial(change / high.value, "%", f"{text} ÷ {high.text}", place=place)
        ratio = 100 * high.value / low.value
        yield _Trial(ratio, "%", f"{high.text} ÷ {low.text}", place=place)
    else:
        text = f"{high.text} ÷ {low.text}"
        yield _Trial(high.value / low.value, figure.unit, text, place=place)


def _products(
    high: Operand,
    low: Operand,
    figure: Figure,
    cues: set[str],
    place: Place | None,
    *,
    is_far: bool,
) -> Iterator[_Trial]:
    unit = figure.unit
    dimensions = {dimension_of(high.unit), dimension_of(low.unit)}
    if high.unit and low.unit and not {"", dimension_of(unit)} & dimensions:
        return
    if "%" in {high.unit, low.unit}:
        share, whole = (high, low) if high.unit == "%" else (low, high)
        if whole.unit != "%" and (figure.digits > 2 or not is_far):
            part = whole.value * share.value / 100
            yield _Trial(part, whole.unit, f"{whole.text} × {share.text}", place=place)
            rest = f"{whole.text} × (100% − {share.text})"
            yield _Trial(whole.value - part, whole.unit, rest, place=place)
            more = f"{whole.text} × (100% + {share.text})"
            yield _Trial(whole.value + part, whole.unit, more, place=place)
        return
    is_money = bool(high.unit) and high.unit == low.unit and high.unit in {"$", "¥", "€", "£"}
    if not is_money and ("product" in cues or figure.digits > 3):
        text = f"{high.text} × {low.text}"
        product = high.value * low.value
        yield _Trial(product, unit, text, place=place)
        if figure.step >= 1_000:  # of millions
            yield _Trial(1e6 * product, unit, text, place=place)
        if "year" in cues:
            yield _Trial(12 * product, unit, f"12 × {text}", place=place)
    if ("rate" in cues or figure.digits > 3) and low.value:
        text = f"{high.text} ÷ {low.text}"
        yield _Trial(high.value / low.value, unit, text, place=place)
        if high.value:
            yield _Trial(low.value / high.value, unit, f"{low.text} ÷ {high.text}", place=place)


def _shares(part: Operand, wholes: Sequence[Operand]) -> Iterator[_Trial]:
    for whole in wholes:
        if whole.value and abs(part.value) <= abs(whole.value):
            text = f"{part.text} ÷ {whole.text}"
            yield _Trial(100 * part.value / whole.value, "%", text, place=part.place)


def _distinct(operands: Sequence[Operand], figure: Figure) -> list[Operand]:
    """Return operands of different values, without the figure itself and zeros."""
    value = abs(float(figure.value)) if isinstance(figure.value, Decimal) else 0.0
    distinct: dict[float, Operand] = {}
    for operand in operands:
        if operand.value and not (operand.value == value and operand.unit == figure.unit):
            distinct.setdefault(operand.value, operand)
    return list(distinct.values())


def _cell(table: Table, column: Column, index: int, units: Mapping[float, str]) -> Operand:
    value = column.values[index]
    return Operand(
        value, column.unit or units.get(value, ""), _written(value), Place(table.source, 0, 0)
    )


def _operand(trial: _Trial) -> Operand:
    return Operand(trial.value, trial.unit, _written(trial.value), trial.place)


def _written(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _listed(values: Sequence[float | str], sign: str) -> str:
    """Return a few values with a sign between them; an empty text for more."""
    if len(values) > 4:
        return ""
    return sign.join(v if isinstance(v, str) else _written(v) for v in values)


def _clock(period: Period) -> str:
    return f"{period.minute // 60}:{period.minute % 60:02d}"
