"""Scores passages: similarity of meaning plus the share of the question's words they contain.

The scores are absolute, so that they also say whether the best passage is any good; ranks, as
in reciprocal rank fusion, can't. How the weights were
chosen, and what that is worth: docs/decisions/retrieval.md.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

from agents.engine.text import stem
from agents.models import Chunk

from .index import WordHits
from .query import Query
from .tokenizer import CJK_RUN, normalize

MIN_RARITY = 0.3
LATIN = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each kind of evidence adds to a score."""

    meaning: float = 1.0
    words: float = 0.30
    exact: float = 0.30
    bm25: float = 0.05
    language: float = 0.03
    document: float = 0.25
    # Where a word counts, added up to 1; in the other language it counts less.
    body: float = 0.6
    heading: float = 0.6
    title: float = 0.3
    translated: float = 0.85


WEIGHTS = Weights()
# Without vectors, words have to say it all.
WORDS_ONLY = Weights(meaning=0.0, words=1.0, bm25=0.1, language=0.1)
# Only to measure what words add.
VECTORS_ONLY = Weights(words=0.0, exact=0.0, bm25=0.0)


@dataclass(slots=True, kw_only=True)
class Candidate:
    """A passage that may answer the question, and the evidence for it."""

    chunk: Chunk
    meaning: float = 0.0  # cosine
    bm25: float = 0.0  # relative to the best
    words: float = 0.0  # share of the question's words, rare ones counting more
    exact: float = 0.0  # share of its identifiers, figures and quotations
    is_same_language: bool = False
    score: float = 0.0


class Field:
    """A text as it is compared with words."""

    def __init__(self, text: str) -> None:
        self.text = text.lower() if text.isascii() else normalize(text)

    def has(self, word: str) -> bool:
        if CJK_RUN.match(word):
            return word in self.text
        return all(map(self._has_stem, _stems(word)))

    def _has_stem(self, wanted: str) -> bool:
        # A word starts with its stem, so only such words have to be compared.
        if wanted not in self.text:
            return False
        return any(stem(word) == wanted for word in _starting_with(wanted).findall(self.text))


@lru_cache(1_000)
def _stems(word: str) -> tuple[str, ...]:
    return tuple(map(stem, LATIN.findall(word)))


@lru_cache(1_000)
def _starting_with(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){re.escape(prefix)}[^\W_]*")


def rank(
    query: Query,
    chunks: Sequence[Chunk],
    hits: WordHits,
    meaning: Mapping[int, float] | None,
    weights: Weights | None = None,
) -> list[Candidate]:
    """Return the passages with their scores, best first."""
    weights = weights or (WORDS_ONLY if meaning is None else WEIGHTS)
    rarity = _rarity(hits, len(query.groups))
    top = max(hits.scores.values(), default=0.0) or 1.0
    candidates = [
        Candidate(
            chunk=chunk,
            meaning=(meaning or {}).get(chunk.pk, 0.0),
            bm25=hits.scores.get(chunk.pk, 0.0) / top,
            is_same_language=chunk.document.language == query.language,
        )
        for chunk in chunks
    ]
    for candidate in candidates:
        _compare_words(candidate, query, rarity, weights)
        candidate.score = _score(candidate, weights)
    _add_document_scores(candidates, weights)
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.chunk.pk))


def _rarity(hits: WordHits, size: int) -> list[float]:
    """Return how much each group of words tells: those in many passages tell little."""
    counts = hits.counts or [0] * size
    return [max(log((hits.total + 1) / (count + 0.5)), MIN_RARITY) for count in counts]


def _compare_words(
    candidate: Candidate, query: Query, rarity: Sequence[float], weights: Weights
) -> None:
    chunk = candidate.chunk
    fields = (
        (Field(chunk.text), weights.body),
        (Field(chunk.heading), weights.heading),
        (Field(chunk.document.title), weights.title),
    )
    total = sum(rarity) or 1.0
    for words, weight in zip(query.groups, rarity, strict=True):
        found = sum(worth * _share(field, words, weights) for field, worth in fields)
        candidate.words += min(found, 1.0) * weight / total
    if query.exact:
        hits = sum(any(text in field.text for field, _ in fields) for text in query.exact)
        candidate.exact = hits / len(query.exact)


def _share(field: Field, words: Sequence[str], weights: Weights) -> float:
    """Return 1 if the text has the word itself, less if it has another name of it."""
    if field.has(words[0]):
        return 1.0
    return weights.translated if any(map(field.has, words[1:])) else 0.0


def _score(candidate: Candidate, weights: Weights) -> float:
    return (
        weights.meaning * candidate.meaning
        + weights.words * candidate.words
        + weights.exact * candidate.exact
        + weights.bm25 * candidate.bm25
        + weights.language * candidate.is_same_language
    )


def _add_document_scores(candidates: Sequence[Candidate], weights: Weights) -> None:
    """Prefer documents with several good passages: the next two of the best one add to it."""
    by_document: dict[int, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda candidate: -candidate.score):
        by_document.setdefault(candidate.chunk.document_id, []).append(candidate)
    for group in by_document.values():
        more = sum(candidate.score for candidate in group[1:3]) / 2
        for candidate in group:
            candidate.score += weights.document * more
