"""Finds passages for a question, within a scope."""

import logging
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from agents.db.installation import configured
from agents.models import Chunk, ChunkVector, Document
from agents.tools.search import Confidence, SearchResult

from .. import embeddings
from ..scope import Scope
from . import full_text, pgvector, vector_index
from .confidence import certainty, confidence
from .index import WordHits
from .passages import best_passages
from .query import Query, parse_query
from .ranking import VECTORS_ONLY, Ranking, rank

if TYPE_CHECKING:
    from agents.models import EmbeddingIndex

    from ..embeddings import Vectors

logger = logging.getLogger(__name__)

CANDIDATES = 100  # from the words, and as many from the vectors
# Columns of a document that a result doesn't have.
UNUSED = ("url", "etag", "last_modified", "mime_type", "digest", "problem", "attempts")

Mode = Literal["hybrid", "words", "vectors"]


def find(
    query: str,
    top_k: int = 5,
    *,
    candidates: int = 0,
    scope: Scope,
    queries: Sequence[str] = (),
    mode: Mode = "hybrid",
    minimum: float | None = None,
) -> SearchResult:
    """Return the most relevant passages in scope; `queries` are other wordings.

    The result also has `candidates`, as many as given if that is more than `top_k`. `minimum`
    is the certainty below which nothing is relevant, by default as configured.
    """
    started = time.perf_counter()
    parsed = parse_query(query, *queries)
    ranking = rank_passages(parsed, scope, mode, queries) if top_k > 0 else Ranking()
    value = certainty(ranking)
    min_certainty = configured.SEARCH_MIN_SCORE.value if minimum is None else minimum
    level: Confidence = confidence(value, min_certainty) if ranking.passages else "none"
    nearest = best_passages(ranking.passages, top_k)
    return SearchResult(
        passages=[] if level == "none" else nearest,
        confidence=level,
        certainty=value,
        searched=list(scope.rows().values_list("name", flat=True)),
        seconds=time.perf_counter() - started,
        candidates=(
            best_passages(ranking.passages, candidates) if candidates > top_k else nearest
        ),
    )


def rank_passages(
    query: Query, scope: Scope, mode: Mode = "hybrid", queries: Sequence[str] = ()
) -> Ranking:
    """Return everything that words or vectors find in scope."""
    if not scope or not query.groups:
        return Ranking()
    hits = (
        full_text.search(query.groups, CANDIDATES, scope) if mode != "vectors" else WordHits()
    )
    meaning = None if mode == "words" else _meaning([query.text, *queries], scope, hits.scores)
    rows = _in_scope({*hits.scores, *(meaning or ())}, scope)
    if not (meaning or {}).keys() <= {row.pk for row in rows}:
        # Passages were replaced since they were read into memory.
        meaning = _meaning([query.text, *queries], scope, hits.scores, is_stale=True)
        rows = _in_scope({*hits.scores, *(meaning or ())}, scope)
    if meaning is not None and not hits.scores.keys() <= meaning.keys():
        # Some have no vector yet. Only by their words can they be compared with the others.
        meaning = None
    weights = VECTORS_ONLY if mode == "vectors" else None
    return rank(query, rows, hits, meaning, weights)


def _in_scope(chunks: Collection[int], scope: Scope) -> list[Chunk]:
    """Return passages with their documents.

    In two steps, because SQLite would go through all passages of the collections.
    """
    rows = Chunk.objects.in_bulk(list(chunks)).values()
    inside = Document.objects.filter(collection__in=scope.collections).defer(*UNUSED)
    documents = inside.in_bulk({row.document_id for row in rows})
    visible = [row for row in rows if row.document_id in documents]
    for row in visible:
        row.document = documents[row.document_id]
    return visible


def _meaning(
    texts: list[str], scope: Scope, extra: Collection[int], *, is_stale: bool = False
) -> dict[int, float] | None:
    """Return the similarity of the nearest and extra passages; None without vectors."""
    if embeddings.configured_model() == embeddings.OFF:
        return None
    index = vector_index.active()
    if index is None:
        return None
    from . import matrix

    try:
        vectors = embeddings.embed(texts, "query", model=index.model)
        vector_index.check_dimension(index, len(vectors[0]))
    except embeddings.EmbeddingUnavailable as error:
        logger.warning("Searching by words only: %s", error)
        return None
    if pgvector.is_ready(index):
        chunks = pgvector.search(index, vectors, scope.collections, CANDIDATES)
        if chunks is not None:
            return _with_windows(index, vectors, dict.fromkeys([*chunks, *extra], -1.0))
    vector_matrix = matrix.for_index(index)
    vector_matrix.refresh(recounts=is_stale)
    nearest = vector_matrix.search(vectors, scope.collections, CANDIDATES, extra)
    return nearest if vector_matrix.has_windows else _with_windows(index, vectors, nearest)


def _with_windows(
    index: "EmbeddingIndex", vectors: "Vectors", similarities: dict[int, float]
) -> dict[int, float]:
    """Return the similarity of the best window of each passage, read from the database."""
    import numpy as np

    rows = ChunkVector.objects.filter(index=index, chunk__in=similarities)
    pairs = list(rows.values_list("chunk_id", "vector"))
    blobs = np.frombuffer(b"".join(bytes(blob) for _, blob in pairs), np.float16)
    window_vectors = blobs.reshape(len(pairs), -1).astype(np.float32)
    best = {chunk: similarities[chunk] for chunk, _ in pairs}
    scores = window_vectors @ np.asarray(vectors, np.float32).T
    for (chunk, _), score in zip(pairs, scores.max(axis=1).tolist(), strict=True):
        best[chunk] = max(best[chunk], score)
    return best
