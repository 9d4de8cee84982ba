"""The language of the filter bar: text → terms with their places → the runs they mean.

`status:failed -agent:helper cost:>0.01 "exact words"`. What cannot be read gets a sentence, and
the rest is looked for all the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from agents.models import Run

from . import filter_fields
from .filter_fields import FIELDS, OTHER_NAMES, Field
from .filter_values import BadValue

MOST_CHARACTERS = 500
MOST_TERMS = 40
MOST_ALTERNATIVES = 10
# Full-width letters, digits and signs are those of any other keyboard, each in its place.
NARROW = {ord("！") + n: ord("!") + n for n in range(94)} | {ord("\u3000"): " "}
CLOSED_BY = {'"': '"', "“": "”", "「": "」", "『": "』"}
NAME = re.compile(r"([A-Za-z]+):")
BARE = re.compile(r"\S+")
VALUE = re.compile(r"[^\s,、]*")
BLANKS = re.compile(r"\s*")
NOT = re.compile(r"-(?=[^\s-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Something that is asked for: a field and what it may be, or, without one, words."""

    field: str
    values: tuple[Any, ...]
    is_not: bool
    start: int
    end: int

    @property
    def which(self) -> Q:
        ask = FIELDS[self.field].which if self.field else filter_fields.text
        found = reduce(or_, map(ask, self.values))
        return ~found if self.is_not else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What could not be read, where it stands, and what was probably meant instead."""

    sentence: str
    start: int
    end: int
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    text: str
    terms: tuple[Term, ...] = ()
    problems: tuple[Problem, ...] = ()

    def apply(self, runs: QuerySet[Run]) -> QuerySet[Run]:
        runs = runs.alias(**filter_fields.ALIASES)
        for term in self.terms:
            runs = runs.filter(term.which)
        return runs

    def said(self, part: Term | Problem) -> str:
        return self.text[part.start : part.end]

    def without(self, part: Term | Problem) -> str:
        before, behind = self.text[: part.start], self.text[part.end :]
        return f"{before.rstrip()} {behind.lstrip()}".strip()

    def mended(self, problem: Problem) -> str:
        """The whole filter with what was probably meant."""
        if not problem.instead:
            return ""
        return self.text[: problem.start] + problem.instead + self.text[problem.end :]


def parse(text: str, *, is_reviewer: bool) -> Filter:
    """Whatever is typed: there is no text that this cannot take."""
    text = clean(text)
    reading = _Reading(text=text, is_reviewer=is_reviewer)
    terms = tuple(reading)
    if len(terms) > MOST_TERMS:
        sentence = _("Only the first %(count)d terms are looked for.") % {"count": MOST_TERMS}
        reading.trouble(sentence, terms[MOST_TERMS].start, len(text))
    return Filter(text=text, terms=terms[:MOST_TERMS], problems=tuple(reading.problems))


def clean(text: str) -> str:
    """As every database takes it."""
    return text.replace("\0", " ").encode(errors="replace").decode()[:MOST_CHARACTERS].strip()


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Goes through the text once; what it cannot read is noted, and left out."""

    text: str
    is_reviewer: bool
    at: int = 0
    problems: list[Problem] = field(default_factory=list)
    plain: str = ""

    def __iter__(self) -> Iterator[Term]:
        self.plain = self.text.translate(NARROW)
        self._skip()
        while self.at < len(self.plain):
            if (term := self._term()) is not None:
                yield term
            self._skip()

    def trouble(self, sentence: str, start: int, end: int, instead: str = "") -> None:
        problem = Problem(sentence=sentence, start=start, end=end, instead=instead)
        self.problems.append(problem)

    def _skip(self) -> None:
        self.at = BLANKS.match(self.plain, self.at).end()

    def _term(self) -> Term | None:
        start = self.at
        is_not = NOT.match(self.plain, start) is not None
        self.at += is_not
        named = NAME.match(self.plain, self.at)
        term = Term(field="", values=(), is_not=is_not, start=start, end=start)
        if named is None:
            values = tuple(value for value in [self._words()] if value)
        else:
            self.at = named.end()
            term, values = self._named(term, named)
        return replace(term, values=values, end=self.at) if values else None

    def _words(self) -> str:
        return self._quoted() if self._is_quote() else self._bare(BARE)[1]

    def _named(self, term: Term, named: re.Match[str]) -> tuple[Term, tuple[Any, ...]]:
        said = list(self._alternatives())
        asked = self._field(named)
        if asked is None:
            return term, ()
        said = self._few(said)
        term = replace(term, field=asked.name)
        if not any(text for text, *_ in said):
            about = {"field": f"{asked.name}:", "example": asked.example}
            missing = _("Something is missing after %(field)s, as in %(example)s.") % about
            self.trouble(missing, term.start, self.at)
            return term, ()
        values = [self._value(asked, *each) for each in said if each[0]]
        return term, tuple(value for value in values if value is not None)

    def _alternatives(self) -> Iterator[tuple[str, int, int]]:
        """Values with a comma between them, each with its place."""
        while True:
            start = self.at
            text = self._quoted() if self._is_quote() else self._bare(VALUE)[0]
            yield text, start, self.at
            if self.plain[self.at : self.at + 1] not in {",", "、"}:
                return
            self.at += 1

    def _few(self, said: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        """Each costs the database a look of its own."""
        if len(said) > MOST_ALTERNATIVES:
            sentence = _("Only the first %(count)d alternatives are looked for.")
            start = said[MOST_ALTERNATIVES][1]
            self.trouble(sentence % {"count": MOST_ALTERNATIVES}, start, self.at)
        return said[:MOST_ALTERNATIVES]

    def _is_quote(self) -> bool:
        return self.plain[self.at : self.at + 1] in CLOSED_BY

    def _quoted(self) -> str:
        """What stands between two quotation marks, as it was typed."""
        start, close = self.at + 1, CLOSED_BY[self.plain[self.at]]
        end = self.plain.find(close, start)
        if end < 0:
            sentence = _("The quotation mark is not closed.")
            self.trouble(sentence, self.at, len(self.text), f"{self.text[self.at :]}{close}")
            end = len(self.text)
        self.at = min(end + 1, len(self.text))
        return self.text[start:end].strip()

    def _bare(self, pattern: re.Pattern[str]) -> tuple[str, str]:
        """A word as fields read it, and as it was typed."""
        found = pattern.match(self.plain, self.at)
        start, self.at = self.at, found.end()
        return found[0], self.text[start : self.at]

    def _field(self, named: re.Match[str]) -> Field | None:
        name = named[1].lower()
        name = OTHER_NAMES.get(name, name)
        start, end = named.span(1)
        if name not in FIELDS:
            self._unknown(name, start, end)
        elif name not in self._known:
            self.trouble(str(FIELDS[name].refusal), start, self.at)
        return self._known.get(name)

    def _unknown(self, name: str, start: int, end: int) -> None:
        if near := get_close_matches(name, self._known, 1):
            sentence = _("There is no field “%(name)s”. Did you mean %(near)s?")
            self.trouble(sentence % {"name": name, "near": near[0]}, start, end, near[0])
        else:
            sentence = _(
                "There is no field “%(name)s”. Words are looked for in quotation marks."
            )
            typed = self.text[start : self.at]
            self.trouble(sentence % {"name": name}, start, self.at, _in_quotes(typed))

    @property
    def _known(self) -> dict[str, Field]:
        return filter_fields.known(is_reviewer=self.is_reviewer)

    def _value(self, asked: Field, text: str, start: int, end: int) -> Any:
        try:
            return asked.read(text)
        except BadValue as error:
            about = {"field": asked.name, "value": text, "takes": error}
            sentence = _("%(field)s cannot be “%(value)s”. %(takes)s") % about
            near = get_close_matches(text.lower(), asked.choices, 1)
            self.trouble(sentence, start, end, near[0] if near else "")
            return None


def _in_quotes(text: str) -> str:
    return f'"{text.replace(chr(34), "")}"'
