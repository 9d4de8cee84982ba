"""Compares memories with a question by meaning; memories get their vectors when needed."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Protocol

from agents.db import database

from . import store

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 2.0
MAX_NEW = 64  # vectors computed for one question
Similarities = dict[int, float]  # by the memory's id
SaveVectors = Callable[[Iterable[tuple[int, bytes]], str], None]


class Embedded(Protocol):
    """A row with a text and, once it was needed, its vector."""

    @property
    def pk(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def vector(self) -> bytes | None: ...
    @property
    def vector_model(self) -> str: ...


async def similarities(
    memories: Sequence[Embedded], question: str, save: SaveVectors = store.save_vectors
) -> Similarities:
    """Return how similar memories are to a question; empty without an embedding model."""
    if (embeddings := _embeddings()) is None:
        return {}
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            found, new, model = await asyncio.to_thread(
                _compare, embeddings, memories, question
            )
    except TimeoutError:
        logger.info("Memories are compared by words: the embedding model took too long.")
        return {}
    except Exception:  # memory must not stop a run
        logger.exception("Memories are compared by words: the embedding model failed.")
        return {}
    if new:
        await database.run(save, new, model)
    return found


def _compare(
    embeddings: Any, memories: Sequence[Embedded], question: str
) -> tuple[Similarities, list[tuple[int, bytes]], str]:
    import numpy as np

    model = embeddings.configured_model()
    if model == embeddings.OFF:
        return {}, [], model
    known = {m.pk: m.vector for m in memories if m.vector and m.vector_model == model}
    missing = [m for m in memories if m.pk not in known][:MAX_NEW]
    question_vector = embeddings.embed([question], "query")[0]
    new_vectors = embeddings.embed([m.text for m in missing], "passage") if missing else ()
    new = [
        (m.pk, np.asarray(vector, np.float16).tobytes())
        for m, vector in zip(missing, new_vectors, strict=True)
    ]
    vectors = {**known, **dict(new)}
    found = {
        pk: float(np.frombuffer(bytes(raw), np.float16).astype(np.float32) @ question_vector)
        for pk, raw in vectors.items()
        if len(raw) == 2 * len(question_vector)
    }
    return found, new, model


def _embeddings() -> Any:
    try:
        return import_module("agents.knowledge.embeddings")
    except ImportError:
        return None
