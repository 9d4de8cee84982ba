"""The filter language: text → terms with positions → matching runs.

`status:failed -agent:helper cost:>0.01 "exact words"`. Unreadable terms get a message, and the
rest is applied anyway.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from agents.models import Run

from . import filter_fields, filter_queries
from .filter_fields import FIELD_ALIASES, FIELDS, FilterField
from .filter_values import BadValue

MAX_CHARS = 500
MAX_TERMS = 40
MAX_ALTERNATIVES = 10
# Full-width letters, digits and signs, mapped one to one.
HALF_WIDTH = {ord("！") + n: ord("!") + n for n in range(94)} | {ord("\u3000"): " "}
CLOSING_QUOTES = {'"': '"', "“": "”", "「": "」", "『": "』"}
FIELD_NAME = re.compile(r"([A-Za-z]+):")
BARE_WORD = re.compile(r"\S+")
VALUE = re.compile(r"[^\s,、]*")
WHITESPACE = re.compile(r"\s*")
NEGATION = re.compile(r"-(?=[^\s-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term: a field with possible values or, without one, text."""

    field: str
    values: tuple[Any, ...]
    is_not: bool
    start: int
    end: int

    @property
    def which(self) -> Q:
        to_query = FIELDS[self.field].which if self.field else filter_queries.text_filter
        condition = reduce(or_, map(to_query, self.values))
        return ~condition if self.is_not else condition


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterProblem:
    """An unreadable part, its position, and a suggestion."""

    sentence: str
    start: int
    end: int
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    text: str
    terms: tuple[Term, ...] = ()
    problems: tuple[FilterProblem, ...] = ()

    def apply(self, runs: QuerySet[Run]) -> QuerySet[Run]:
        runs = runs.alias(**filter_queries.QUERY_ALIASES)
        for term in self.terms:
            runs = runs.filter(term.which)
        return runs

    @property
    def has_experiments(self) -> bool:
        """Whether it asks for runs of experiments, which other lists leave out."""
        return self._asks_for({"has"}, "experiment")

    @property
    def has_imported(self) -> bool:
        """Whether it asks for imported answers, which other lists leave out."""
        return self._asks_for({"source", "route"}, Run.IMPORTED)

    def _asks_for(self, fields: set[str], value: str) -> bool:
        return any(
            term.field in fields and value in term.values and not term.is_not
            for term in self.terms
        )

    def source_text(self, part: Term | FilterProblem) -> str:
        return self.text[part.start : part.end]

    def without(self, part: Term | FilterProblem) -> str:
        before, behind = self.text[: part.start], self.text[part.end :]
        return f"{before.rstrip()} {behind.lstrip()}".strip()

    def with_terms(self, fields: Iterable[str], text: str) -> str:
        """Return the filter with these fields' positive terms replaced by others."""
        wanted, rest = set(fields), self.text
        for term in reversed(self.terms):
            if term.field in wanted and not term.is_not:
                rest = f"{rest[: term.start].rstrip()} {rest[term.end :].lstrip()}"
        return f"{rest.strip()} {text}".strip()

    def with_suggestion(self, problem: FilterProblem) -> str:
        """Return the filter with the suggestion applied."""
        if not problem.instead:
            return ""
        return self.text[: problem.start] + problem.instead + self.text[problem.end :]


def parse(text: str, *, is_reviewer: bool) -> Filter:
    """Parse a filter; any text is accepted."""
    text = clean(text)
    parser = _FilterParser(text=text, is_reviewer=is_reviewer)
    terms = tuple(parser)
    if len(terms) > MAX_TERMS:
        sentence = _("Only the first %(count)d terms are used.") % {"count": MAX_TERMS}
        parser.add_problem(sentence, terms[MAX_TERMS].start, len(text))
    return Filter(text=text, terms=terms[:MAX_TERMS], problems=tuple(parser.problems))


def clean(text: str) -> str:
    """Return the text as every database accepts it."""
    return text.replace("\0", " ").encode(errors="replace").decode()[:MAX_CHARS].strip()


@dataclass(slots=True, kw_only=True)
class _FilterParser:
    """Parses the text in one pass; unreadable parts are reported and skipped."""

    text: str
    is_reviewer: bool
    at: int = 0
    problems: list[FilterProblem] = field(default_factory=list)
    plain: str = ""

    def __iter__(self) -> Iterator[Term]:
        self.plain = self.text.translate(HALF_WIDTH)
        self._skip_whitespace()
        while self.at < len(self.plain):
            if (term := self._parse_term()) is not None:
                yield term
            self._skip_whitespace()

    def add_problem(self, sentence: str, start: int, end: int, instead: str = "") -> None:
        problem = FilterProblem(sentence=sentence, start=start, end=end, instead=instead)
        self.problems.append(problem)

    def _skip_whitespace(self) -> None:
        if match := WHITESPACE.match(self.plain, self.at):
            self.at = match.end()

    def _parse_term(self) -> Term | None:
        start = self.at
        is_not = NEGATION.match(self.plain, start) is not None
        self.at += is_not
        match = FIELD_NAME.match(self.plain, self.at)
        term = Term(field="", values=(), is_not=is_not, start=start, end=start)
        if match is None:
            values = tuple(value for value in [self._parse_words()] if value)
        else:
            self.at = match.end()
            term, values = self._parse_field_term(term, match)
        return replace(term, values=values, end=self.at) if values else None

    def _parse_words(self) -> str:
        return self._parse_quoted() if self._is_at_quote() else self._parse_word(BARE_WORD)[1]

    def _parse_field_term(
        self, term: Term, match: re.Match[str]
    ) -> tuple[Term, tuple[Any, ...]]:
        alternatives = list(self._parse_alternatives())
        filter_field = self._find_field(match)
        if filter_field is None:
            return term, ()
        alternatives = self._limit_alternatives(alternatives)
        term = replace(term, field=filter_field.name)
        if not any(text for text, *_ in alternatives):
            params = {"field": f"{filter_field.name}:", "example": filter_field.example}
            sentence = _("Add a value after %(field)s, e.g. %(example)s.") % params
            self.add_problem(sentence, term.start, self.at)
            return term, ()
        values = [self._parse_value(filter_field, *each) for each in alternatives if each[0]]
        return term, tuple(value for value in values if value is not None)

    def _parse_alternatives(self) -> Iterator[tuple[str, int, int]]:
        """Yield comma-separated values with their positions."""
        while True:
            start = self.at
            text = self._parse_quoted() if self._is_at_quote() else self._parse_word(VALUE)[0]
            yield text, start, self.at
            if self.plain[self.at : self.at + 1] not in {",", "、"}:
                return
            self.at += 1

    def _limit_alternatives(
        self, alternatives: list[tuple[str, int, int]]
    ) -> list[tuple[str, int, int]]:
        """Limit the alternatives, each of which costs the database a lookup."""
        if len(alternatives) > MAX_ALTERNATIVES:
            sentence = _("Only the first %(count)d alternatives are used.")
            start = alternatives[MAX_ALTERNATIVES][1]
            self.add_problem(sentence % {"count": MAX_ALTERNATIVES}, start, self.at)
        return alternatives[:MAX_ALTERNATIVES]

    def _is_at_quote(self) -> bool:
        return self.plain[self.at : self.at + 1] in CLOSING_QUOTES

    def _parse_quoted(self) -> str:
        """Parse quoted text, as typed."""
        start = self.at + 1
        close = CLOSING_QUOTES[self.plain[self.at]]
        end = self.plain.find(close, start)
        if end < 0:
            sentence = _("The closing quotation mark is missing.")
            self.add_problem(
                sentence, self.at, len(self.text), f"{self.text[self.at :]}{close}"
            )
            end = len(self.text)
        self.at = min(end + 1, len(self.text))
        return self.text[start:end].strip()

    def _parse_word(self, pattern: re.Pattern[str]) -> tuple[str, str]:
        """Parse a word, normalized and as typed."""
        start = self.at
        match = pattern.match(self.plain, self.at)
        if match is not None:
            self.at = match.end()
        return self.plain[start : self.at], self.text[start : self.at]

    def _find_field(self, match: re.Match[str]) -> FilterField | None:
        name = match[1].lower()
        name = FIELD_ALIASES.get(name, name)
        start, end = match.span(1)
        if name not in FIELDS:
            self._report_unknown(name, start, end)
        elif name not in self._allowed_fields:
            self.add_problem(str(FIELDS[name].refusal), start, self.at)
        return self._allowed_fields.get(name)

    def _report_unknown(self, name: str, start: int, end: int) -> None:
        if matches := get_close_matches(name, self._allowed_fields, 1):
            sentence = _("Unknown field “%(name)s”. Did you mean %(near)s?")
            self.add_problem(
                sentence % {"name": name, "near": matches[0]}, start, end, matches[0]
            )
        else:
            sentence = _(
                "Unknown field “%(name)s”. To search for this text, put it in quotation marks."
            )
            typed = self.text[start : self.at]
            self.add_problem(sentence % {"name": name}, start, self.at, _quote(typed))

    @property
    def _allowed_fields(self) -> dict[str, FilterField]:
        return filter_fields.allowed_fields(is_reviewer=self.is_reviewer)

    def _parse_value(self, filter_field: FilterField, text: str, start: int, end: int) -> Any:
        try:
            return filter_field.read(text)
        except BadValue as error:
            params = {"field": filter_field.name, "value": text, "takes": error}
            sentence = _("%(field)s can't be “%(value)s”. %(takes)s") % params
            matches = get_close_matches(text.lower(), filter_field.choices, 1)
            self.add_problem(sentence, start, end, matches[0] if matches else "")
            return None


def _quote(text: str) -> str:
    return f'"{text.replace(chr(34), "")}"'
