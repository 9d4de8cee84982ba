"""Finds a figure, a citation or the words of a sentence in the sources."""

from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from typing import Any, NamedTuple

from agents.engine.text import STOP_WORDS, loose_terms

from .figures import Figure, figures_in, figures_in_data
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


Places = tuple[Place, ...]  # the first one of each source


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
            for figure in figures_in_data(source.text):
                figures.append((figure, Place(index, figure.start, figure.end)))
                if len(figures) >= MAX_FIGURES:
                    return figures
        return figures

    @cached_property
    def _exact(self) -> dict[Any, Places]:
        places: dict[Any, Places] = {}
        for figure, place in self._figures:
            _add(places, figure.value, place)
            _add(places, (figure.value, figure.unit), place)
        return places

    @cached_property
    def _rounded(self) -> dict[tuple[int, Decimal], Places]:
        places: dict[tuple[int, Decimal], Places] = {}
        for figure, place in self._figures:
            if isinstance(figure.value, Decimal):
                for decimals in range(min(figure.decimals, 6)):
                    quantum = Decimal(1).scaleb(-decimals)
                    value = figure.value.quantize(quantum, ROUND_HALF_UP)
                    _add(places, (decimals, value), place)
        return places

    @cached_property
    def _asked(self) -> frozenset[Any]:
        """The figures that tools were called with, which the model wrote itself."""
        calls = {source.asked for source in self.sources}
        return frozenset(figure.value for call in calls for figure in figures_in(call))

    def find(self, figure: Figure) -> tuple[Places, bool]:
        """Return where sources have this figure, and whether it was rounded."""
        value = figure.value
        if not isinstance(value, Decimal):
            return self._exact.get(value, ()), False
        if figure.is_trivial:
            return self._exact.get((value, figure.unit), ()) if figure.unit else (), False
        forms = _forms(value, figure.unit)
        for form, _decimals in forms:
            if places := self._exact.get(form):
                return places, False
        if figure.digits < MIN_ROUNDED_DIGITS:
            return (), False
        for form, decimals in forms:
            if places := self._rounded.get((figure.decimals + decimals, form)):
                return places, True
        return (), False

    def explains(self, figure: Figure, question: Set[Any]) -> bool:
        """Whether a figure without a source may still come from somewhere.

        It can be in the question or in the call of a tool, or be rounded to too few digits to
        say what it was.
        """
        value = figure.value
        if not isinstance(value, Decimal):
            return value in question or value in self._asked
        return any(
            form in question
            or form in self._asked
            or (figure.decimals + decimals, form) in self._rounded
            for form, decimals in _forms(value, figure.unit)
        )

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

    @cached_property
    def figure_sources(self) -> Sources:
        """What is cited for a figure, for each source."""
        return tuple(source.of_figures for source in self.sources)

    def cited(self, number: int, shared_terms: Callable[[], Counter[int]]) -> int | None:
        """Return the passage with this number; of several, the one most like the sentence."""
        candidates = self._numbered.get(number, [])
        # The run gave passages their numbers; other results are only numbered by position.
        passages = [i for i in candidates if self.sources[i].passage is not None]
        candidates = passages[:1] or candidates
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        shared = shared_terms()
        return max(candidates, key=lambda index: (shared[index], index))

    @cached_property
    def _sources_by_term(self) -> dict[str, list[int]]:
        by_term: dict[str, list[int]] = {}
        for index, source in enumerate(self.sources):
            for term in terms_of(f"{source.label}\n{source.text}"):
                by_term.setdefault(term, []).append(index)
        return by_term

    def shared_terms(self, text: str) -> Counter[int]:
        """Count the words of a text that each source has, too."""
        shared = Counter[int]()
        for term in terms_of(text):
            shared.update(self._sources_by_term.get(term, ()))
        return shared

    def supports(self, sentence: str) -> bool:
        """Whether a source has most words of a sentence; short ones get the benefit."""
        terms = terms_of(sentence)
        if len(terms) < MIN_TERMS:
            return True
        best = max(self.shared_terms(sentence).values(), default=0)
        return best >= MIN_OVERLAP * len(terms)


def _add(places: dict[Any, Places], key: Any, place: Place) -> None:
    known = places.get(key, ())
    if not known or known[-1].source != place.source:
        places[key] = (*known, place)


def _forms(value: Decimal, unit: str) -> list[tuple[Decimal, int]]:
    """Return the values that a figure can stand for, and how many decimals more they have."""
    forms = [(value, 0), (-value, 0)] if value > 0 else [(value, 0)]
    return forms + ([(form / 100, 2) for form, _ in forms] if unit == "%" else [])


def terms_of(text: str) -> frozenset[str]:
    """Return what the words of a sentence and of a source are compared by."""
    return loose_terms(text, COMMON_WORDS)
