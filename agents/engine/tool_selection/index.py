"""Ranks tools for a question: BM25 over their words and over shared concepts."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.engine.tool import TEXT_INPUT_SCHEMA, Tool

from . import words
from .lexicon import Lexicon, shipped

K1, B = 1.2, 0.5
# How much a word counts by where it stands.
FIELD_WEIGHTS = {"name": 2.5, "title": 2.0, "description": 1.5, "server": 1.5, "arguments": 0.5}
CONCEPT_WEIGHT = 0.7  # of a word that only means the same
WEAK_WEIGHT = 0.1  # of a word that any request can contain
EARLIER_WEIGHT = 0.35  # of the question before
MAX_SUCCESS_SHARE = 0.15  # by which past success changes a score
MAX_ARGUMENTS = 40
MIN_NAME = 3  # a shorter name is a word of many questions
SEPARATOR = "__"  # between a server and its tool


_SEPARATORS = re.compile(r"[_-]+")
_WEAK = frozenset(map(words.stem, words.WEAK_WORDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolText:
    """What is known about a tool, as it is searched."""

    name: str
    title: str = ""
    description: str = ""
    arguments: str = ""
    server: str = ""

    @property
    def whole(self) -> str:
        """The text whose meaning is compared with a question."""
        full = f"{self.server}: {self.name}" if self.server else self.name
        spoken = _SEPARATORS.sub(" ", full)
        return ". ".join(filter(None, [spoken, self.title, self.description]))


def describe(tool: Tool) -> ToolText:
    """Return what a tool says about itself."""
    server, mark, name = tool.name.partition(SEPARATOR)
    return ToolText(
        name=name if mark else tool.name,
        title=str(getattr(tool, "title", "")),
        description=tool.description,
        arguments=" ".join(_arguments(getattr(tool, "parameters", TEXT_INPUT_SCHEMA))),
        server=str(getattr(tool, "server", "") or (server if mark else "")),
    )


def _arguments(schema: Mapping[str, Any]) -> Iterable[str]:
    given = schema.get("properties")
    known = given.items() if isinstance(given, Mapping) else ()
    for name, about in list(known)[:MAX_ARGUMENTS]:
        yield str(name)
        if isinstance(about, Mapping) and isinstance(text := about.get("description"), str):
            yield text


@dataclass(frozen=True, slots=True)
class Query:
    """A question as units: alternatives of which the best one counts, with their weights."""

    units: list[list[tuple[str, float]]] = field(default_factory=list)


class ToolIndex:
    """The words of a set of tools. It never changes, so it is shared between runs."""

    def __init__(self, tools: Mapping[str, ToolText], lexicon: Lexicon | None = None) -> None:
        self.names = list(tools)
        self.texts = dict(tools)
        self.lexicon = lexicon or shipped()
        self.spoken_names = {name: _spoken_names(name, text) for name, text in tools.items()}
        self._postings: dict[str, dict[int, float]] = {}
        lengths = [self._add(at, text) for at, text in enumerate(tools.values())]
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        self._norms = [K1 * (1 - B + B * length / mean) for length in lengths]

    def _add(self, position: int, tool: ToolText) -> float:
        length = 0.0
        for name, weight in FIELD_WEIGHTS.items():
            text = words.plain(getattr(tool, name))
            term_counts = Counter(words.terms(text))
            length += weight * term_counts.total()
            for _phrase, concepts in self.lexicon.concepts(text):
                term_counts.update(dict.fromkeys(concepts, 1))
            for term, times in term_counts.items():
                posting = self._postings.setdefault(term, {})
                posting[position] = posting.get(position, 0.0) + weight * times
        return length

    def scores(
        self, question: str, earlier: str = "", success: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Return the tools that have anything in common with the question, with their scores.

        `success` is how often calls of a tool succeed, from 0 to 1.
        """
        totals: dict[int, float] = {}
        for text, weight in ((question, 1.0), (earlier, EARLIER_WEIGHT)):
            for unit in self.query(text).units if text else ():
                for at, score in self._unit_scores(unit).items():
                    totals[at] = totals.get(at, 0.0) + weight * score
        rates = success or {}
        return {
            self.names[at]: score * _success_factor(rates.get(self.names[at]))
            for at, score in totals.items()
        }

    def query(self, question: str) -> Query:
        text = words.plain(question)
        units: dict[str, dict[str, float]] = {}
        for term in words.terms(text):
            units.setdefault(term, {})[term] = WEAK_WEIGHT if term in _WEAK else 1.0
        for phrase, concepts in self.lexicon.concepts(text):
            unit = units.setdefault(phrase, {})
            for concept in concepts:
                unit[concept] = CONCEPT_WEIGHT * (WEAK_WEIGHT if phrase in _WEAK else 1.0)
        return Query([list(unit.items()) for unit in units.values()])

    def _unit_scores(self, unit: Sequence[tuple[str, float]]) -> dict[int, float]:
        best: dict[int, float] = {}
        for term, weight in unit:
            posting = self._postings.get(term, {})
            absent, present = len(self.names) - len(posting), len(posting)
            rarity = weight * math.log(1 + (absent + 0.5) / (present + 0.5))
            for at, times in posting.items():
                score = rarity * times * (K1 + 1) / (times + self._norms[at])
                if score > best.get(at, 0.0):
                    best[at] = score
        return best


def _spoken_names(name: str, tool: ToolText) -> list[str]:
    """Return the ways a question can name a tool: with its server or, if clear, without."""
    whole, own = words.runs(words.plain(name)), words.runs(words.plain(tool.name))
    forms = [whole] if len(whole) > 1 or len(name) > MIN_NAME else []
    forms += [own] if len(own) > 1 else []
    return [f" {' '.join(form)} " for form in forms]


def _success_factor(rate: float | None) -> float:
    if rate is None:
        return 1.0
    return 1.0 + MAX_SUCCESS_SHARE * (2 * min(1.0, max(0.0, rate)) - 1)
