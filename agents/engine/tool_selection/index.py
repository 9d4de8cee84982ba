"""Ranks tools for a question: BM25 over their words and over shared concepts."""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from agents.engine.tool import TEXT_INPUT_SCHEMA, Tool

from . import words
from .lexicon import Lexicon, shipped

# BM25's usual names: how fast a repeated term counts less, and how much length matters.
K1 = 1.2
B = 0.5
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
    schema: Mapping[str, Any] = getattr(tool, "parameters", TEXT_INPUT_SCHEMA)
    properties = schema.get("properties")
    argument_texts = []
    for argument, field_schema in islice(
        properties.items() if isinstance(properties, Mapping) else (), MAX_ARGUMENTS
    ):
        argument_texts.append(str(argument))
        if isinstance(field_schema, Mapping):
            description = field_schema.get("description")
            if isinstance(description, str):
                argument_texts.append(description)
    return ToolText(
        name=name if mark else tool.name,
        title=str(getattr(tool, "title", "")),
        description=tool.description,
        arguments=" ".join(argument_texts),
        server=str(getattr(tool, "server", "") or (server if mark else "")),
    )


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
        self.spoken_names: dict[str, list[str]] = {}
        self._postings: dict[str, dict[int, float]] = {}
        lengths = [0.0] * len(tools)
        for position, (tool_name, tool) in enumerate(tools.items()):
            # A question can name a tool with its server or, if clear, without.
            full_name = words.runs(words.plain(tool_name))
            short_name = words.runs(words.plain(tool.name))
            forms = [full_name] if len(full_name) > 1 or len(tool_name) > MIN_NAME else []
            forms += [short_name] if len(short_name) > 1 else []
            self.spoken_names[tool_name] = [f" {' '.join(form)} " for form in forms]
            for field_name, weight in FIELD_WEIGHTS.items():
                text = words.plain(getattr(tool, field_name))
                term_counts = Counter(words.terms(text))
                lengths[position] += weight * term_counts.total()
                for _phrase, concepts in self.lexicon.concepts(text):
                    term_counts.update(dict.fromkeys(concepts, 1))
                for term, times in term_counts.items():
                    posting = self._postings.setdefault(term, {})
                    posting[position] = posting.get(position, 0.0) + weight * times
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        self._norms = [K1 * (1 - B + B * length / mean) for length in lengths]

    def scores(
        self, question: str, earlier: str = "", success: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Return the tools that have anything in common with the question, with their scores.

        `success` is how often calls of a tool succeed, from 0 to 1.
        """
        totals: dict[int, float] = {}
        for text, text_weight in ((question, 1.0), (earlier, EARLIER_WEIGHT)):
            for unit in self.query(text).units if text else ():
                best: dict[int, float] = {}  # of the unit's terms, for each tool
                for term, weight in unit:
                    posting = self._postings.get(term, {})
                    present = len(posting)
                    absent = len(self.names) - present
                    rarity = weight * math.log(1 + (absent + 0.5) / (present + 0.5))
                    for position, times in posting.items():
                        score = rarity * times * (K1 + 1) / (times + self._norms[position])
                        if score > best.get(position, 0.0):
                            best[position] = score
                for position, score in best.items():
                    totals[position] = totals.get(position, 0.0) + text_weight * score
        scores: dict[str, float] = {}
        for position, score in totals.items():
            name = self.names[position]
            scores[name] = score
            if success and (rate := success.get(name)) is not None:
                scores[name] *= 1.0 + MAX_SUCCESS_SHARE * (2 * min(1.0, max(0.0, rate)) - 1)
        return scores

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
