"""Finds passages for a question, within a scope."""

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from django.conf import settings

from agents.models import Chunk, ChunkVector
from agents.tools.search import Passage

from .. import embeddings
from ..scope import Scope
from . import full_text, vector_index
from .confidence import Confidence, certainty, confidence
from .index import WordHits
from .passages import to_passages
from .query import Query, parse_query
from .ranking import VECTORS_ONLY, Candidate, rank

if TYPE_CHECKING:
    from agents.models import EmbeddingIndex

logger = logging.getLogger(__name__)

CANDIDATES = 100  # from the words, and as many from the vectors

Mode = Literal["hybrid", "words", "vectors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found, best first, and how far it can be trusted.

    With confidence `none` there are no passages: what was nearest is in `candidates`.
    """

    passages: list[Passage]
    confidence: Confidence
    certainty: float = 0.0
    searched: list[str] = field(default_factory=list)  # names of the collections
    seconds: float = 0.0
    candidates: list[Passage] = field(default_factory=list)


def find(
    query: str,
    top_k: int = 5,
    *,
    scope: Scope,
    queries: Sequence[str] = (),
    mode: Mode = "hybrid",
    minimum: float | None = None,
) -> SearchResult:
    """Return the most relevant passages in scope; `queries` are other wordings.

    `minimum` is the certainty below which nothing is relevant, by default as configured.
    """
    started = time.perf_counter()
    parsed = parse_query(query, *queries)
    ranked = candidates(parsed, scope, mode, queries) if top_k > 0 else []
    value = certainty(parsed, ranked)
    least = settings.ENVIRONMENT.search_min_score if minimum is None else minimum
    level: Confidence = confidence(value, least) if ranked else "none"
    found = to_passages(ranked, top_k)
    return SearchResult(
        passages=[] if level == "none" else found,
        confidence=level,
        certainty=value,
        searched=list(scope.rows().values_list("name", flat=True)),
        seconds=time.perf_counter() - started,
        candidates=found,
    )


def candidates(
    query: Query, scope: Scope, mode: Mode = "hybrid", queries: Sequence[str] = ()
) -> list[Candidate]:
    """Return everything that words or vectors find in scope, ranked."""
    if not scope or not query.groups:
        return []
    hits = (
        full_text.search(query.groups, CANDIDATES, scope) if mode != "vectors" else WordHits()
    )
    meaning = None if mode == "words" else _meaning([query.text, *queries], scope, hits.scores)
    found = {*hits.scores, *(meaning or ())}
    rows = Chunk.objects.filter(pk__in=found, document__collection__in=scope.collections)
    weights = VECTORS_ONLY if mode == "vectors" else None
    return rank(query, list(rows.select_related("document")), hits, meaning, weights)


def _meaning(texts: list[str], scope: Scope, more: Collection[int]) -> dict[int, float] | None:
    """Return the similarity of the nearest passages, and of `more`; None without vectors."""
    if embeddings.configured_model() == embeddings.OFF:
        return None
    index = vector_index.active()
    if index is None:
        return None
    try:
        return _nearest(index, texts, scope, more)
    except embeddings.EmbeddingUnavailable as error:
        logger.warning("Searching by words only: %s", error)
        return None


def _nearest(
    index: "EmbeddingIndex", texts: list[str], scope: Scope, more: Collection[int]
) -> dict[int, float]:
    import numpy as np

    from . import matrix

    vectors = embeddings.embed(texts, "query", model=index.model)
    stored = matrix.for_index(index)
    stored.refresh()
    found = set(more)
    for vector in vectors:
        found |= stored.search(vector, scope.collections, CANDIDATES).keys()
    rows = ChunkVector.objects.filter(index=index, chunk__in=found)
    pairs = list(rows.values_list("chunk_id", "vector"))
    if not pairs:
        return {}
    blobs = np.frombuffer(b"".join(bytes(blob) for _, blob in pairs), np.float16)
    similarity = (blobs.reshape(len(pairs), -1).astype(np.float32) @ vectors.T).max(axis=1)
    best: dict[int, float] = {}
    for (chunk, _), score in zip(pairs, similarity.tolist(), strict=True):
        best[chunk] = max(best.get(chunk, -1.0), score)
    return best
