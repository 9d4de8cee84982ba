"""The filter language: text → terms with positions → matching runs.

`status:failed -agent:helper cost:>0.01 "exact words"`. Unreadable terms get a message, and the
rest is applied anyway.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
    def condition(self) -> Q:
        to_query = FIELDS[self.field].to_query if self.field else filter_queries.text_filter
        matches = reduce(or_, map(to_query, self.values))
        return ~matches if self.is_not else matches


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
            runs = runs.filter(term.condition)
        return runs

    @property
    def has_experiments(self) -> bool:
        """Whether it asks for runs of experiments, which other lists leave out."""
        return self._asks_for({"has"}, "experiment")

    @property
    def has_imported(self) -> bool:
        """Whether it asks for imported answers, which other lists leave out."""
        return self._asks_for({"source", "route"}, Run.IMPORTED)

    @property
    def has_queue(self) -> bool:
        """Whether it asks for review queues, of which reviewers see some."""
        return any(term.field == "queue" for term in self.terms)

    def _asks_for(self, fields: set[str], value: str) -> bool:
        return any(
            term.field in fields and value in term.values and not term.is_not
            for term in self.terms
        )

    def source_text(self, located: Term | FilterProblem) -> str:
        return self.text[located.start : located.end]

    def without(self, term: Term) -> str:
        return f"{self.text[: term.start].rstrip()} {self.text[term.end :].lstrip()}".strip()

    def with_terms(self, fields: Iterable[str], text: str) -> str:
        """Return the filter with these fields' positive terms replaced by others."""
        replaced = set(fields)
        remaining = self.text
        for term in reversed(self.terms):
            if term.field in replaced and not term.is_not:
                remaining = (
                    f"{remaining[: term.start].rstrip()} {remaining[term.end :].lstrip()}"
                )
        return f"{remaining.strip()} {text}".strip()

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
    position: int = 0
    problems: list[FilterProblem] = field(default_factory=list)
    plain: str = ""

    def __iter__(self) -> Iterator[Term]:
        self.plain = self.text.translate(HALF_WIDTH)
        self._skip_whitespace()
        while self.position < len(self.plain):
            if (term := self._parse_term()) is not None:
                yield term
            self._skip_whitespace()

    def add_problem(self, sentence: str, start: int, end: int, instead: str = "") -> None:
        problem = FilterProblem(sentence=sentence, start=start, end=end, instead=instead)
        self.problems.append(problem)

    def _skip_whitespace(self) -> None:
        if match := WHITESPACE.match(self.plain, self.position):
            self.position = match.end()

    def _parse_term(self) -> Term | None:
        start = self.position
        is_not = NEGATION.match(self.plain, start) is not None
        self.position += is_not
        match = FIELD_NAME.match(self.plain, self.position)
        if match is None:
            is_quoted = self._is_at_quote()
            text = self._parse_quoted() if is_quoted else self._parse_word(BARE_WORD)[1]
            if not text:
                return None
            return Term(field="", values=(text,), is_not=is_not, start=start, end=self.position)
        self.position = match.end()
        alternatives = list(self._parse_alternatives())
        filter_field = self._find_field(match)
        if filter_field is None:
            return None
        if len(alternatives) > MAX_ALTERNATIVES:
            # Each costs the database a lookup.
            sentence = _("Only the first %(count)d alternatives are used.")
            limit_start = alternatives[MAX_ALTERNATIVES][1]
            self.add_problem(sentence % {"count": MAX_ALTERNATIVES}, limit_start, self.position)
        typed_values = [typed for typed in alternatives[:MAX_ALTERNATIVES] if typed[0]]
        if not typed_values:
            params = {"field": f"{filter_field.name}:", "example": filter_field.example}
            sentence = _("Add a value after %(field)s, e.g. %(example)s.") % params
            self.add_problem(sentence, start, self.position)
            return None
        values = []
        for text, value_start, value_end in typed_values:
            try:
                values.append(filter_field.parse(text))
            except BadValue as error:
                problem = {"field": filter_field.name, "value": text, "takes": error}
                sentence = _("%(field)s can't be “%(value)s”. %(takes)s") % problem
                matches = get_close_matches(text.lower(), filter_field.choices, 1)
                self.add_problem(
                    sentence, value_start, value_end, matches[0] if matches else ""
                )
        if not values:
            return None
        return Term(
            field=filter_field.name,
            values=tuple(values),
            is_not=is_not,
            start=start,
            end=self.position,
        )

    def _parse_alternatives(self) -> Iterator[tuple[str, int, int]]:
        """Yield comma-separated values with their positions."""
        while True:
            start = self.position
            text = self._parse_quoted() if self._is_at_quote() else self._parse_word(VALUE)[0]
            yield text, start, self.position
            if self.plain[self.position : self.position + 1] not in {",", "、"}:
                return
            self.position += 1

    def _is_at_quote(self) -> bool:
        return self.plain[self.position : self.position + 1] in CLOSING_QUOTES

    def _parse_quoted(self) -> str:
        """Parse quoted text, as typed."""
        start = self.position + 1
        close = CLOSING_QUOTES[self.plain[self.position]]
        end = self.plain.find(close, start)
        if end < 0:
            sentence = _("The closing quotation mark is missing.")
            self.add_problem(
                sentence, self.position, len(self.text), f"{self.text[self.position :]}{close}"
            )
            end = len(self.text)
        self.position = min(end + 1, len(self.text))
        return self.text[start:end].strip()

    def _parse_word(self, pattern: re.Pattern[str]) -> tuple[str, str]:
        """Parse a word, normalized and as typed."""
        start = self.position
        match = pattern.match(self.plain, self.position)
        if match is not None:
            self.position = match.end()
        return self.plain[start : self.position], self.text[start : self.position]

    def _find_field(self, match: re.Match[str]) -> FilterField | None:
        """Return the field of this name; report one that is unknown or not allowed."""
        name = match[1].lower()
        name = FIELD_ALIASES.get(name, name)
        allowed = filter_fields.allowed_fields(is_reviewer=self.is_reviewer)
        start, end = match.span(1)
        if name in FIELDS:
            if name not in allowed:
                self.add_problem(str(FIELDS[name].refusal), start, self.position)
        elif matches := get_close_matches(name, allowed, 1):
            sentence = _("Unknown field “%(name)s”. Did you mean %(near)s?")
            params = {"name": name, "near": matches[0]}
            self.add_problem(sentence % params, start, end, matches[0])
        else:
            sentence = _(
                "Unknown field “%(name)s”. To search for this text, put it in quotation marks."
            )
            typed = self.text[start : self.position].replace('"', "")
            self.add_problem(sentence % {"name": name}, start, self.position, f'"{typed}"')
        return allowed.get(name)
