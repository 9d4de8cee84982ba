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

from agents.engine.material import Passage
from agents.engine.text import stem
from agents.models import Chunk

from .index import WordHits
from .passages import to_passage
from .query import Query
from .tokenizer import CJK_RUN, normalize

MIN_RARITY = 0.3
MAX_RARE = 50  # passages
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


class Field:
    """A text as it is compared with the words of a question."""

    def __init__(self, text: str) -> None:
        self.text = text.lower() if text.isascii() else normalize(text)

    def has(self, term: str) -> bool:
        is_japanese, stems = _stems(term)
        if is_japanese:
            return term in self.text
        for term_stem, starting_with_stem in stems:
            # A word starts with its stem, so only such words have to be compared.
            if term_stem not in self.text:
                return False
            if term_stem not in map(stem, starting_with_stem.findall(self.text)):
                return False
        return True

    def shares(self, query: Query, weights: Weights) -> list[float]:
        """Return 1 for each word that the text has, and less if it has another name of it."""
        return [
            1.0
            if self.has(group[0])
            else weights.translated
            if any(map(self.has, group[1:]))
            else 0.0
            for group in query.groups
        ]


@lru_cache(1_000)
def _stems(term: str) -> tuple[bool, tuple[tuple[str, re.Pattern[str]], ...]]:
    """Return whether a term is Japanese, which has no stems, and its stems.

    Each is with a pattern of the words that start with it.
    """
    stems = map(stem, LATIN.findall(term))
    patterns = ((s, re.compile(rf"(?<![^\W_]){re.escape(s)}[^\W_]*")) for s in stems)
    return CJK_RUN.match(term) is not None, tuple(patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Passages, best first.

    `absent` is the share of the question's words, by how rare they are, that none of them has.
    """

    passages: Sequence[Passage] = ()
    absent: float = 0.0


def rank(
    query: Query,
    chunks: Sequence[Chunk],
    hits: WordHits,
    meaning: Mapping[int, float] | None,
    weights: Weights | None = None,
) -> Ranking:
    """Return the passages with their scores."""
    weights = weights or (WORDS_ONLY if meaning is None else WEIGHTS)
    # How much each group of words tells: those in many passages tell little.
    counts = hits.counts or [0] * len(query.groups)
    rarity = [max(log((hits.total + 1) / (count + 0.5)), MIN_RARITY) for count in counts]
    total_rarity = sum(rarity) or 1.0
    best_bm25 = max(hits.scores.values(), default=0.0) or 1.0
    titles: dict[int, tuple[Field, list[float]]] = {}
    scored: list[tuple[Chunk, dict[str, float]]] = []
    scores_by_document: dict[int, list[float]] = {}
    present: set[int] = set()
    for chunk in chunks:
        document = chunk.document
        if document.pk not in titles:
            field = Field(document.title)
            titles[document.pk] = field, field.shares(query, weights)
        title, title_shares = titles[document.pk]
        body = Field(chunk.text)
        heading = Field(chunk.heading)
        shares = zip(
            body.shares(query, weights),
            heading.shares(query, weights),
            title_shares,
            rarity,
            strict=True,
        )
        share_of_words = 0.0
        for group, (in_body, in_heading, in_title, rarity_of_word) in enumerate(shares):
            share = (
                weights.body * in_body + weights.heading * in_heading + weights.title * in_title
            )
            share_of_words += min(share, 1.0) * rarity_of_word / total_rarity
            if share:
                present.add(group)
        exact = 0.0
        if query.exact:
            texts = (body.text, heading.text, title.text)
            exact = sum(any(string in text for text in texts) for string in query.exact)
            exact /= len(query.exact)
        similarity = (meaning or {}).get(chunk.pk, 0.0)
        score = (
            weights.meaning * similarity
            + weights.words * share_of_words
            + weights.exact * exact
            + weights.bm25 * (hits.scores.get(chunk.pk, 0.0) / best_bm25)
            + weights.language * (document.language == query.language)
        )
        evidence = {"meaning": similarity, "words": share_of_words, "exact": exact}
        scored.append((chunk, evidence | {"score": score}))
        scores_by_document.setdefault(document.pk, []).append(score)
    # Prefer documents with several good passages: the next two of the best one add to it.
    bonuses = {
        document: weights.document * (sum(sorted(scores, reverse=True)[1:3]) / 2)
        for document, scores in scores_by_document.items()
    }
    for chunk, evidence in scored:
        evidence["score"] += bonuses[chunk.document_id]
    scored.sort(key=lambda pair: (-pair[1]["score"], pair[0].pk))
    # A more common word can be in passages that others were better than.
    absent = sum(
        rarity[group]
        for group, count in enumerate(hits.counts)
        if not count or (count <= MAX_RARE and group not in present)
    )
    return Ranking(
        passages=[to_passage(chunk, **evidence) for chunk, evidence in scored],
        absent=absent / total_rarity,
    )
