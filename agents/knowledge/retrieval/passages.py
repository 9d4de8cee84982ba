"""Turns ranked passages into results: neighbours joined, documents mixed."""

from collections.abc import Sequence
from dataclasses import replace

from agents.engine.material import Passage
from agents.models import Chunk

# Each further passage of a document is ranked a little lower, so that others are seen too.
REPEAT_PENALTY = 0.06
MAX_JOINED_CHARS = 3_600


def best_passages(ranked: Sequence[Passage], top_k: int) -> list[Passage]:
    """Return the best passages; those that follow each other in a document are one."""
    counts: dict[int | None, int] = {}
    penalized: list[tuple[float, Passage]] = []
    for passage in ranked:
        count = counts.get(passage.document, 0)
        counts[passage.document] = count + 1
        penalized.append((passage.score - REPEAT_PENALTY * count, passage))
    penalized.sort(key=lambda pair: -pair[0])
    best: list[Passage] = []
    for _, passage in penalized:
        for index, better in enumerate(best):
            if _are_neighbours(better, passage):
                first, second = sorted((better, passage), key=lambda half: half.ordinal)
                best[index] = replace(
                    first,
                    text=f"{first.text}\n\n{second.text}",
                    last_ordinal=second.last_ordinal,
                    chunk=better.chunk,
                    score=max(better.score, passage.score),
                )
                break
        else:
            if len(best) == top_k:
                break
            best.append(passage)
    return best


def _are_neighbours(better: Passage, passage: Passage) -> bool:
    if (better.document, better.part) != (passage.document, passage.part):
        return False
    if better.heading != passage.heading:
        return False
    if len(better.text) + len(passage.text) > MAX_JOINED_CHARS:
        return False
    return passage.ordinal in (better.ordinal - 1, better.last_ordinal + 1)


def to_passage(
    chunk: Chunk,
    *,
    meaning: float = 0.0,
    words: float = 0.0,
    exact: float = 0.0,
    score: float = 0.0,
) -> Passage:
    """Return a row as it is handed to tools and pages."""
    document = chunk.document
    return Passage(
        title=document.title,
        heading=chunk.heading,
        text=chunk.text,
        path=document.source,
        ordinal=chunk.ordinal,
        last_ordinal=chunk.ordinal,
        part=chunk.part,
        document=document.pk,
        chunk=chunk.pk,
        collection=document.collection_id,
        meaning=meaning,
        words=words,
        exact=exact,
        score=score,
    )
