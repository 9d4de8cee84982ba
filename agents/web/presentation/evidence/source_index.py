"""Finds a figure, a citation or the words of a sentence in the sources."""

from collections import Counter
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from typing import Any, NamedTuple

from agents.engine.text import STOP_WORDS, loose_terms

from .figures import Figure, figures_in
from .sources import MAX_SOURCE_CHARS, MAX_SOURCES, MAX_TOTAL_CHARS, Sources

MAX_FIGURES = 3_000  # in all observations
MIN_ROUNDED_DIGITS = 3  # fewer may be chance
MIN_TERMS = 3
MIN_OVERLAP = 0.6
COMMON_WORDS = STOP_WORDS | {"all", "also", "more", "most"}


class Place(NamedTuple):
    source: int
    start: int
    end: int


@dataclass(frozen=True)
class SourceIndex:
    """The figures and words of a run's sources."""

    sources: Sources

    @cached_property
    def is_complete(self) -> bool:
        """Whether all observations were compared; if not, nothing is called unsupported."""
        sizes = Counter[int]()
        for source in self.sources:
            sizes[source.step] += len(source.text)
        is_cut = any(size >= MAX_SOURCE_CHARS for size in sizes.values())
        is_full = sizes.total() >= MAX_TOTAL_CHARS or len(self.sources) >= MAX_SOURCES
        return not is_cut and not is_full and len(self._figures) < MAX_FIGURES

    @cached_property
    def _figures(self) -> list[tuple[Figure, Place]]:
        figures: list[tuple[Figure, Place]] = []
        for index, source in enumerate(self.sources):
            for figure in figures_in(source.text):
                figures.append((figure, Place(index, figure.start, figure.end)))
                if len(figures) >= MAX_FIGURES:
                    return figures
        return figures

    @cached_property
    def _exact(self) -> dict[Any, Place]:
        places: dict[Any, Place] = {}
        for figure, position in self._figures:
            places.setdefault(figure.value, position)
            places.setdefault((figure.value, figure.unit), position)
        return places

    @cached_property
    def _rounded(self) -> dict[tuple[int, Decimal], Place]:
        places: dict[tuple[int, Decimal], Place] = {}
        for figure, position in self._figures:
            if isinstance(figure.value, Decimal):
                for decimals in range(min(figure.decimals, 6)):
                    quantum = Decimal(1).scaleb(-decimals)
                    value = figure.value.quantize(quantum, ROUND_HALF_UP)
                    places.setdefault((decimals, value), position)
        return places

    def find(self, figure: Figure) -> tuple[Place, bool] | None:
        """Return where a source has this figure, and whether it was rounded."""
        value = figure.value
        if not isinstance(value, Decimal):
            position = self._exact.get(value)
            return (position, False) if position else None
        if figure.is_trivial:
            position = self._exact.get((value, figure.unit)) if figure.unit else None
            return (position, False) if position else None
        # Forms of the value, and how many decimals more they have.
        forms = [(value, 0), (-value, 0)] if value > 0 else [(value, 0)]
        forms += [(form / 100, 2) for form, _ in forms] if figure.unit == "%" else []
        for form, _decimals in forms:
            if position := self._exact.get(form):
                return position, False
        if figure.digits < MIN_ROUNDED_DIGITS:
            return None
        for form, decimals in forms:
            if position := self._rounded.get((figure.decimals + decimals, form)):
                return position, True
        return None

    @cached_property
    def _numbered(self) -> dict[int, list[int]]:
        """The sources by number; without any, a number can only mean a step, in order."""
        by_number: dict[int, list[int]] = {}
        first_by_step: dict[int, int] = {}
        for index, source in enumerate(self.sources):
            first_by_step.setdefault(source.step, index)
            if source.number:
                by_number.setdefault(source.number, []).append(index)
        return by_number or {
            number: [index] for number, index in enumerate(first_by_step.values(), start=1)
        }

    def cited(self, number: int, sentence: str) -> int | None:
        """Return the passage with this number; of several, the one most like the sentence."""
        candidates = self._numbered.get(number, [])
        # The run gave passages their numbers; other results are only numbered by position.
        passages = [i for i in candidates if self.sources[i].passage is not None]
        candidates = passages[:1] or candidates
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        shared = self._shared_terms(sentence)
        return max(candidates, key=lambda index: (shared[index], index))

    @cached_property
    def _sources_by_term(self) -> dict[str, list[int]]:
        by_term: dict[str, list[int]] = {}
        for index, source in enumerate(self.sources):
            for term in terms_of(f"{source.label}\n{source.text}"):
                by_term.setdefault(term, []).append(index)
        return by_term

    def _shared_terms(self, text: str) -> Counter[int]:
        shared = Counter[int]()
        for term in terms_of(text):
            shared.update(self._sources_by_term.get(term, ()))
        return shared

    def supports(self, sentence: str) -> bool:
        """Whether a source has most words of a sentence; short ones get the benefit."""
        terms = terms_of(sentence)
        if len(terms) < MIN_TERMS:
            return True
        best = max(self._shared_terms(sentence).values(), default=0)
        return best >= MIN_OVERLAP * len(terms)


def terms_of(text: str) -> frozenset[str]:
    """Return what the words of a sentence and of a source are compared by."""
    return loose_terms(text, COMMON_WORDS)
