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
MIN_TERMS, MIN_OVERLAP = 3, 0.6
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
        found: list[tuple[Figure, Place]] = []
        for at, source in enumerate(self.sources):
            for figure in figures_in(source.text):
                found.append((figure, Place(at, figure.start, figure.end)))
                if len(found) >= MAX_FIGURES:
                    return found
        return found

    @cached_property
    def _exact(self) -> dict[Any, Place]:
        found: dict[Any, Place] = {}
        for figure, place in self._figures:
            found.setdefault(figure.value, place)
            found.setdefault((figure.value, figure.unit), place)
        return found

    @cached_property
    def _rounded(self) -> dict[tuple[int, Decimal], Place]:
        found: dict[tuple[int, Decimal], Place] = {}
        for figure, place in self._figures:
            if isinstance(figure.value, Decimal):
                for decimals in range(min(figure.decimals, 6)):
                    quantum = Decimal(1).scaleb(-decimals)
                    value = figure.value.quantize(quantum, ROUND_HALF_UP)
                    found.setdefault((decimals, value), place)
        return found

    def find(self, figure: Figure) -> tuple[Place, bool] | None:
        """Return where a source has this figure, and whether it was rounded."""
        value = figure.value
        if not isinstance(value, Decimal):
            place = self._exact.get(value)
            return (place, False) if place else None
        if figure.is_trivial:
            place = self._exact.get((value, figure.unit)) if figure.unit else None
            return (place, False) if place else None
        forms = [(value, 0), (-value, 0)] if value > 0 else [(value, 0)]
        forms += [(form / 100, 2) for form, _ in forms] if figure.unit == "%" else []
        for form, _more in forms:
            if place := self._exact.get(form):
                return place, False
        if figure.digits < MIN_ROUNDED_DIGITS:
            return None
        for form, more in forms:
            if place := self._rounded.get((figure.decimals + more, form)):
                return place, True
        return None

    @cached_property
    def _numbered(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for at, source in enumerate(self.sources):
            if source.number:
                found.setdefault(source.number, []).append(at)
        if not found:  # then a number can only mean an observation, in order
            found = {number: [at] for number, at in enumerate(self._first_parts, start=1)}
        return found

    @cached_property
    def _first_parts(self) -> list[int]:
        firsts: dict[int, int] = {}
        for at, source in enumerate(self.sources):
            firsts.setdefault(source.step, at)
        return list(firsts.values())

    def cited(self, number: int, sentence: str) -> int | None:
        """Return the passage with this number; of several, the one most like the sentence."""
        candidates = self._numbered.get(number, [])
        # The run gave passages their numbers; other results are only numbered by position.
        passages = [at for at in candidates if self.sources[at].passage is not None]
        candidates = passages[:1] or candidates
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        shared = self._shared_terms(sentence)
        return max(candidates, key=lambda at: (shared[at], at))

    @cached_property
    def _places_by_term(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, source in enumerate(self.sources):
            for term in terms_of(f"{source.label}\n{source.text}"):
                found.setdefault(term, []).append(at)
        return found

    def _shared_terms(self, text: str) -> Counter[int]:
        shared = Counter[int]()
        for term in terms_of(text):
            shared.update(self._places_by_term.get(term, ()))
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
