"""Says of each figure of a sentence whether results have it or it follows from them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from .arithmetic import Arithmetic
from .cues import hedged_forms
from .index import FigureIndex, Match
from .names import unknown_names
from .operands import Computation, Context, Operand
from .parsing import IMPOSSIBLE_DATE, MAX_TRIVIAL, Figure, Period, figures_in
from .tables import unit_in_name
from .units import COUNTERS, NO_UNITS, dimension_of

MAX_COMPUTED = 400  # figures for which operations are tried, of one answer
MAX_NEARBY = 10
MIN_CODE_DIGITS = 3
LABEL = re.compile(
    r"(?:\b(?:step|phase|option|part|section|chapter|page|pages|p\.|pp\."
    r"|table|figure|fig\.|item|tip|note|question|top"
    r"|appendix|version|v|ver\.|method|scenario|stage|tier|level|priority"
    r"|rank|ranked|number|no\.|footnote|source|line|paragraph"
    r"|slide|clause|article|point|example|case|plan|exercise|week|day|round"
    r"|set)\s?|#|№|手順|ステップ|図|表|トップ|上位|その|第|ページ|レベル|例"
    r"|案|方法|優先度|条|フェーズ)$",
    re.IGNORECASE,
)
NUMBERED = re.compile(
    r"\b(?:platform|gate|room|track|terminal|bay|floor|hall|aisle|dock|lane"
    r"|coach|ward|seat)\s$",
    re.IGNORECASE,
)
ORDINAL_UNITS = {"st", "nd", "rd", "th", "位", "番目", "番"}


class Status(StrEnum):
    SUPPORTED = "supported"  # it is in a result
    KNOWN = "known"  # it is in the question, or where it is can't be said
    COMPUTED = "computed"
    UNSUPPORTED = "unsupported"
    UNCHECKED = "unchecked"  # nothing has it, but it can be a way of speaking


class Finding(NamedTuple):
    """A figure or name of a sentence, and where it comes from."""

    start: int
    end: int
    status: Status
    match: Match = Match()
    computation: Computation | None = None


@dataclass
class FigureReader:
    """Reads the sentences of one answer, in their order."""

    index: FigureIndex
    counts: frozenset[int] = frozenset()  # items of the answer's lists and rows of its tables
    nearby: list[Operand] = field(default_factory=list)  # figures of the sentences before
    operands: list[Operand] = field(default_factory=list)  # figures of the last sentence
    _remaining: int = MAX_COMPUTED

    @cached_property
    def arithmetic(self) -> Arithmetic:
        return Arithmetic(self.index)

    def read(
        self,
        sentence: str,
        surroundings: str = "",
        near: Sequence[Operand] = (),
        head: str = "",
        is_skipped: Callable[[Figure], bool] = lambda _figure: False,
    ) -> list[Finding]:
        """Return the figures of a sentence, or of a cell: its row's are `near`."""
        figures = [
            figure
            for figure in figures_in(sentence, words=not sentence.isdigit())
            if not is_skipped(figure)
        ]
        figures = _without_overlaps(figures)
        if unit := unit_in_name(head):
            figures = [
                figure._replace(unit=figure.unit or unit)
                if isinstance(figure.value, Decimal)
                else figure
                for figure in figures
            ]
        findings: list[Finding] = []
        open_figures: list[Figure] = []
        explained: list[tuple[Figure, list[Operand]]] = []
        for figure in figures:
            match = self._find(figure, sentence)
            if match is not None:
                status = Status.SUPPORTED if match.places else Status.KNOWN
                findings.append(Finding(figure.start, figure.end, status, match))
                explained.append((figure, _operands(figure, sentence, match)))
            else:
                open_figures.append(figure)
        for _attempt in range(2):  # a figure can follow from one that comes after it
            unexplained: list[Figure] = []
            for figure in open_figures:
                nearest = sorted(explained, key=lambda k: abs(k[0].start - figure.start))
                operands = [*chain.from_iterable(o for _figure, o in nearest), *near]
                computation = self._compute(figure, sentence, surroundings, operands)
                if computation is None:
                    unexplained.append(figure)
                    continue
                findings.append(
                    Finding(figure.start, figure.end, Status.COMPUTED, Match(), computation)
                )
                explained.append((figure, _operands(figure, sentence, Match())))
            if len(unexplained) == len(open_figures) or not unexplained:
                open_figures = unexplained
                break
            open_figures = unexplained
        for figure in open_figures:
            is_marked = self._is_checked(figure, sentence)
            status = Status.UNSUPPORTED if is_marked else Status.UNCHECKED
            findings.append(Finding(figure.start, figure.end, status))
        self.operands = [*chain.from_iterable(o for _figure, o in explained)]
        self.nearby = [*self.operands, *self.nearby][:MAX_NEARBY]
        return sorted(findings, key=lambda finding: finding.start)

    def names(self, sentence: str) -> list[Finding]:
        """Return the names of a sentence that nothing has."""
        return [
            Finding(start, end, Status.UNSUPPORTED)
            for start, end in unknown_names(sentence, self.index.words)
        ]

    def _find(self, figure: Figure, sentence: str) -> Match | None:
        if figure.is_trivial and not figure.unit and figure.value == 0:
            return Match()
        match = self.index.find(figure)
        if match is not None or not isinstance(figure.value, Decimal):
            return match
        forms = hedged_forms(figure, sentence)
        if forms and forms[0].margin > figure.step / 2:
            for _number, unit, _place in self.index.near(forms[0].value, forms[0].margin):
                known = dimension_of(unit)
                if not known or not figure.unit or known == dimension_of(figure.unit):
                    return Match((), is_rounded=True)
        return None

    def _compute(
        self,
        figure: Figure,
        sentence: str,
        surroundings: str,
        operands: Sequence[Operand],
    ) -> Computation | None:
        if self._remaining <= 0 or not self._is_checked(figure, sentence):
            return None
        value = figure.value
        is_bare = isinstance(value, Decimal) and figure.is_trivial and not figure.unit
        is_year = is_bare and Decimal(str(value)) > MAX_TRIVIAL
        if figure.unit in ORDINAL_UNITS or is_year:
            return None
        self._remaining -= 1
        context = Context(sentence, surroundings, operands, self.nearby, self.counts)
        return self.arithmetic.explain(figure, context)

    def _is_checked(self, figure: Figure, sentence: str) -> bool:
        """Whether a figure that nothing has is marked; others can be a way of speaking."""
        value = figure.value
        if isinstance(value, str):
            if figure.unit == IMPOSSIBLE_DATE:
                return True
            if figure.unit == "/":
                return any(len(number) >= MIN_CODE_DIGITS for number in value.split("/"))
            is_long = sum(map(str.isdigit, value)) >= MIN_CODE_DIGITS
            return is_long or self._has_codes_like(value)
        if isinstance(value, date | Period):
            return True
        if figure.unit == "%" and value in {0, 100}:
            return False
        preceding = sentence[max(0, figure.start - 16) : figure.start]
        if value <= 2_000 and not dimension_of(figure.unit) and LABEL.search(preceding):
            return False
        if figure.unit in ORDINAL_UNITS and value <= MAX_TRIVIAL:
            return False
        if NUMBERED.search(preceding):
            return True
        if value == 1 and figure.unit in {"$", "€", "£", "¥"}:
            return False  # of an exchange rate
        if not figure.is_trivial:
            return not figure.is_word or bool(dimension_of(figure.unit)) or figure.unit != ""
        if value > MAX_TRIVIAL and not figure.is_word:
            return True  # a year
        if dimension_of(figure.unit):
            return value > 0
        if value < 2:
            return False
        if figure.is_word:
            return figure.unit in self._units or (value > MAX_TRIVIAL and figure.unit != "")
        return bool(figure.unit) and figure.unit not in NO_UNITS

    def _has_codes_like(self, code: str) -> bool:
        """Whether the results have codes with the same letters."""
        letters = re.match(r"[A-Z]{2,}", code)
        return letters is not None and any(
            isinstance(figure.value, str) and figure.value.startswith(letters[0])
            for figure, _place in self.index.figures
        )

    @cached_property
    def _units(self) -> frozenset[str]:
        """What the results count."""
        units = {figure.unit for figure, _place in self.index.figures}
        units |= {figure.unit for figure in self.index.known_figures}
        units -= NO_UNITS | {""}
        return frozenset(unit for unit in units if len(unit) > 2 or unit in COUNTERS)


def _operands(figure: Figure, sentence: str, match: Match) -> list[Operand]:
    value = figure.value
    if not isinstance(value, Decimal) or not value:
        return []
    if figure.is_trivial and 1900 <= value <= 2100:
        return []
    place = match.places[0] if match.places else None
    text = sentence[figure.start : figure.end]
    operands = [Operand(abs(float(value)), figure.unit, text, place)]
    if figure.step >= 1_000 and value >= 10**6 and value % 10**5 == 0:
        operands.append(
            Operand(float(value) / 1e6, figure.unit, text, place)
        )  # for prices per million
    return operands


def _without_overlaps(figures: list[Figure]) -> list[Figure]:
    figures.sort(key=lambda figure: (figure.start, -figure.end))
    separate: list[Figure] = []
    for figure in figures:
        if not separate or figure.start >= separate[-1].end:
            separate.append(figure)
    return separate
