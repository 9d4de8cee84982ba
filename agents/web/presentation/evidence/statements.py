"""Reads the sentences of an answer: which sources they cite, and which have their figures."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple, TypeVar

from agents.engine.material import CITATION
from agents.engine.material.citations import MAX_RANGE, cited_numbers
from agents.engine.material.figures import (
    SENTENCE_END,
    Computation,
    Figure,
    FigureReader,
    Operand,
    Place,
    Status,
)

from .source_index import SourceIndex
from .sources import Observation

Item = TypeVar("Item")
Key = tuple[int | str, int]  # of a source
Range = tuple[int, int]
MAX_PLACES = 1_000  # citations and figures of the answer
# Citations after a sentence are its own, unless the next one goes on with them.
CITED_AFTER = re.compile(rf"(?:(?:{CITATION.pattern})[ \t]*)+(?![ \t]*[a-z])")
SEPARATOR = re.compile(r"[ \t]?[,、;]?[ \t]?")
SPACES = " \t\u3000"


class FoundFigure(NamedTuple):
    """Where a source has a figure of the answer, or what it is computed from."""

    place: Place
    is_rounded: bool = False
    computation: Computation | None = None
    text: str = ""  # of the figure, if it is computed


class Surroundings(NamedTuple):
    """What a statement is read with: the words around it, and the figures of its row."""

    words: str = ""
    row: Sequence[Operand] = ()
    head: str = ""  # of its column
    has_names: bool = False  # whether its names are checked


@dataclass(slots=True)
class Chain:
    """Citations that the model wrote next to each other, and their sources by number."""

    start: int
    end: int
    sources: dict[Key, tuple[int, Observation]]


@dataclass(slots=True)
class Statement:
    """What a sentence or a cell of a table is based on."""

    chains: list[Chain] = field(default_factory=list)
    # For each figure, the sources that have it.
    figures: list[dict[Key, FoundFigure]] = field(default_factory=list)
    unsourced: list[Range] = field(default_factory=list)
    has_figures: bool = False  # then they are marked, not the whole statement
    computed: list[tuple[Range, FoundFigure]] = field(default_factory=list)
    operands: list[Operand] = field(default_factory=list)  # that others can follow from

    def add(self, chain: Chain, text: str) -> None:
        """Add a citation, without the spaces before it."""
        last = self.chains[-1] if self.chains else None
        if last and SEPARATOR.fullmatch(text, last.end, chain.start):
            last.end = chain.end
            last.sources |= chain.sources
            return
        while chain.start > 0 and text[chain.start - 1] in SPACES:
            chain.start -= 1
        self.chains.append(chain)


class StatementReader:
    """Reads statements, until the answer has too many citations and figures."""

    def __init__(self, index: SourceIndex, counts: frozenset[int] = frozenset()) -> None:
        self.index = index
        self.figures = FigureReader(index.figures, counts)
        self.is_full = False
        self._places = 0

    def read(
        self,
        text: str,
        start: int,
        end: int,
        ranges: Sequence[Range],
        surroundings: Surroundings,
    ) -> Statement:
        """Find the sources of a statement; it lies in a text without full-width digits."""
        sentence = text[start:end]
        statement = Statement()
        if not ranges or self.is_full:
            return statement
        matches = [
            match
            for match in self._within_limit(CITATION.finditer(text, start, end))
            if _is_within(match.span(), ranges)
        ]
        if matches:
            shared_terms = cache(partial(self.index.shared_terms, sentence))
            for match in matches:
                sources: dict[Key, tuple[int, Observation]] = {}
                for number in cited_numbers(match)[:MAX_RANGE]:
                    source_index = self.index.cited(number, shared_terms)
                    if source_index is not None:
                        source = self.index.sources[source_index]
                        sources.setdefault(source.key, (number, source))
                if sources:
                    statement.add(Chain(match.start(), match.end(), sources), text)
        cited = [match.span() for match in matches]

        def is_skipped(figure: Figure) -> bool:
            span = (start + figure.start, start + figure.end)
            is_cited = any(first <= span[0] < last for first, last in cited)
            return is_cited or not _is_within(span, ranges)

        findings = self.figures.read(
            sentence, surroundings.words, surroundings.row, surroundings.head, is_skipped
        )
        statement.has_figures = any(f.status is not Status.UNCHECKED for f in findings)
        if surroundings.has_names:
            findings += self.figures.names(sentence)
        for finding in self._within_limit(findings):
            span = (start + finding.start, start + finding.end)
            if finding.status is Status.UNSUPPORTED:
                if _is_within(span, ranges):
                    statement.unsourced.append(span)
                continue
            if finding.computation is not None:
                place = finding.computation.place
                if place is not None:
                    written = text[slice(*span)]
                    found = FoundFigure(place, False, finding.computation, written)
                    statement.computed.append((span, found))
                    key = self.index.figure_sources[place.source].key
                    statement.figures.append({key: found})
            elif finding.match.places:
                places, is_rounded = finding.match
                found_by_source = self._places_by_source(places, is_rounded)
                statement.figures.append(found_by_source)
        statement.unsourced.sort()
        statement.operands = self.figures.operands
        return statement

    def _within_limit(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            self._places += 1
            if self._places > MAX_PLACES:
                self.is_full = True
                return
            yield item

    def _places_by_source(
        self, places: Iterable[Place], is_rounded: bool
    ) -> dict[Key, FoundFigure]:
        found: dict[Key, FoundFigure] = {}
        for place in places:
            key = self.index.figure_sources[place.source].key
            found.setdefault(key, FoundFigure(place, is_rounded))
        return found


def sentences(text: str) -> Iterator[Range]:
    """Yield where sentences begin and end, each with the citations after it."""
    start = 0
    for match in SENTENCE_END.finditer(text):
        end = match.end()
        if end <= start:
            continue
        is_followed = "\n" not in match[0] and text.startswith(("[", "【"), end)
        if is_followed and (cited := CITED_AFTER.match(text, end)):
            end = cited.end()
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _is_within(span: Range, ranges: Sequence[Range]) -> bool:
    """Whether it lies in one segment: a mark can't cross other tags."""
    return any(start <= span[0] and span[1] <= end for start, end in ranges)
