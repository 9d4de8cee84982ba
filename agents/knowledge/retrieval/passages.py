"""Turns ranked passages into results: neighbours joined, documents mixed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.models import Chunk
from agents.tools.search import Passage

from .ranking import Candidate

# Each further passage of a document is ranked a little lower, so that others are seen too.
REPEAT_PENALTY = 0.06
MAX_JOINED_CHARS = 3_600


def to_passages(ranked: Sequence[Candidate], top_k: int) -> list[Passage]:
    """Return the best passages; those that follow each other in a document are one."""
    found: list[Passage] = []
    for candidate in _mixed(ranked):
        passage = to_passage(candidate.chunk, candidate.score)
        at = next((n for n, other in enumerate(found) if _are_neighbours(other, passage)), None)
        if at is not None:
            found[at] = _join(found[at], passage)
        elif len(found) < top_k:
            found.append(passage)
        else:
            break
    return found


def _mixed(ranked: Iterable[Candidate]) -> list[Candidate]:
    counts: dict[int, int] = {}
    penalized = []
    for candidate in ranked:
        count = counts.get(candidate.chunk.document_id, 0)
        counts[candidate.chunk.document_id] = count + 1
        penalized.append((candidate.score - REPEAT_PENALTY * count, candidate))
    return [candidate for _, candidate in sorted(penalized, key=lambda pair: -pair[0])]


def _are_neighbours(one: Passage, other: Passage) -> bool:
    if (one.document_id, one.part) != (other.document_id, other.part):
        return False
    if len(one.text) + len(other.text) > MAX_JOINED_CHARS or one.heading != other.heading:
        return False
    return other.chunk in (one.chunk - 1, one.last_chunk + 1)


def _join(one: Passage, other: Passage) -> Passage:
    first, second = (one, other) if one.chunk < other.chunk else (other, one)
    return replace(
        first,
        text=f"{first.text}\n\n{second.text}",
        last_chunk=second.last_chunk,
        end=second.end,
        chunk_id=one.chunk_id,
        score=max(one.score, other.score),
    )


def to_passage(chunk: Chunk, score: float) -> Passage:
    """Return a passage as it is handed to tools and pages."""
    document = chunk.document
    return Passage(
        document=document.title,
        source=document.name,
        path=document.source,
        heading=chunk.heading,
        chunk=chunk.ordinal,
        last_chunk=chunk.ordinal,
        text=chunk.text,
        score=score,
        lang=document.language,
        document_id=document.pk,
        chunk_id=chunk.pk,
        collection_id=document.collection_id,
        part=chunk.part,
        start=chunk.start,
        end=chunk.end,
    )
