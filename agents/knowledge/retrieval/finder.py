"""Finds passages for a question, within a scope."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agents.models import Chunk
from agents.tools.search import Passage

from ..scope import Scope
from . import full_text
from .index import Scores
from .tokenizer import is_japanese, query_terms

LANGUAGE_BOOST = 1.5  # factor for passages in the question's language

Confidence = Literal["good", "weak", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found, best first, and how far it can be trusted."""

    passages: list[Passage]
    confidence: Confidence
    searched: list[str]  # names of the collections
    seconds: float


def find(
    query: str, top_k: int = 5, *, scope: Scope, queries: Sequence[str] = ()
) -> SearchResult:
    """Return the most relevant passages in scope; `queries` are other wordings."""
    started = time.perf_counter()
    passages = _find_passages(query, top_k, scope)
    return SearchResult(
        passages=passages,
        confidence="good" if passages else "none",
        searched=list(scope.rows().values_list("name", flat=True)),
        seconds=time.perf_counter() - started,
    )


def _find_passages(query: str, top_k: int, scope: Scope) -> list[Passage]:
    every, some = full_text.search(query_terms(query), top_k * 4, scope)
    language = "ja" if is_japanese(query) else "en"
    return [*_rank_passages(every, language), *_rank_passages(some, language)][:top_k]


def _rank_passages(scores: Scores, language: str) -> list[Passage]:
    chunks = Chunk.objects.select_related("document").in_bulk(scores)
    found = [
        to_passage(
            chunk, score * (LANGUAGE_BOOST if chunk.document.language == language else 1)
        )
        for pk, score in scores.items()
        if (chunk := chunks.get(pk))
    ]
    return sorted(found, key=lambda passage: -passage.score)


def to_passage(chunk: Chunk, score: float) -> Passage:
    return Passage(
        document=chunk.document.title,
        source=chunk.document.name,
        heading=chunk.heading,
        chunk=chunk.ordinal,
        text=chunk.text,
        score=score,
        lang=chunk.document.language,
        document_id=chunk.document_id,
        chunk_id=chunk.pk,
        collection_id=chunk.document.collection_id,
        part=chunk.part,
        start=chunk.start,
        end=chunk.end,
    )
