"""Finds a figure, a citation or the words of a sentence in the sources."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from agents.engine.material.figures import FigureIndex, has_known_name
from agents.engine.text import STOP_WORDS, loose_terms

from .sources import MAX_SOURCE_CHARS, MAX_SOURCES, MAX_TOTAL_CHARS, Observation, Sources

MIN_TERMS = 3
MIN_OVERLAP = 0.6
MIN_NAMED_OVERLAP = 0.2  # of a sentence with a name that a source has, too
COMMON_WORDS = STOP_WORDS | {"all", "also", "more", "most"}


@dataclass(frozen=True)
class SourceIndex:
    """The figures and words of a run's sources."""

    sources: Sources
    question: str = ""

    @cached_property
    def is_complete(self) -> bool:
        """Whether all observations were compared; if not, nothing is called unsupported."""
        sizes = Counter[int]()
        for source in self.sources:
            sizes[source.step] += len(source.text)
        is_cut = any(size >= MAX_SOURCE_CHARS for size in sizes.values())
        is_full = sizes.total() >= MAX_TOTAL_CHARS or len(self.sources) >= MAX_SOURCES
        return not is_cut and not is_full and not self.figures.is_full

    @cached_property
    def figures(self) -> FigureIndex:
        """The figures of the sources; what tools were called with, the model wrote itself."""
        calls = dict.fromkeys(source.asked for source in self.sources)
        labels = dict.fromkeys(source.label for source in self.sources)
        return FigureIndex(
            [source.text for source in self.sources],
            [source.step if _is_item(source) else None for source in self.sources],
            "\n".join([self.question[:MAX_TOTAL_CHARS], *calls, *labels]),
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
        if best >= MIN_OVERLAP * len(terms):
            return True
        is_named = has_known_name(sentence, self.figures.words, self.figures.padded_words)
        return is_named and best >= MIN_NAMED_OVERLAP * len(terms)


def _is_item(source: Observation) -> bool:
    """Whether it is one of the rows of a result."""
    is_passage = source.passage is not None or (source.is_text and not source.url)
    return source.number > 0 and not is_passage


def terms_of(text: str) -> frozenset[str]:
    """Return what the words of a sentence and of a source are compared by."""
    return loose_terms(text, COMMON_WORDS)
