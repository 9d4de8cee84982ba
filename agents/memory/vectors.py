"""Compares notes with a question by meaning; notes get their vectors when needed."""

import asyncio
import logging
from collections.abc import Sequence

from agents.db import database
from agents.knowledge import embeddings
from agents.models.memory.notes import Note

from . import store

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 2.0
MAX_NEW = 64  # vectors computed for one question
Similarities = dict[Note, float]


async def similarities(notes: Sequence[Note], question: str) -> Similarities:
    """Return how similar notes are to a question; empty without an embedding model."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            scores, new, model = await asyncio.to_thread(_compare, notes, question)
    except TimeoutError:
        logger.info("Notes are compared by words: the embedding model took too long.")
        return {}
    except Exception:  # memory must not stop a run
        logger.exception("Notes are compared by words: the embedding model failed.")
        return {}
    if new:
        await database.run(store.save_vectors, new, model)
    return scores


def _compare(
    notes: Sequence[Note], question: str
) -> tuple[Similarities, dict[Note, bytes], str]:
    """Return the similarities, the vectors that are new, and the model they are of."""
    import numpy as np

    model = embeddings.configured_model()
    if model == embeddings.OFF:
        return {}, {}, model
    saved = {note: note.vector for note in notes if note.vector and note.vector_model == model}
    missing = [note for note in notes if note not in saved][:MAX_NEW]
    question_vector = np.asarray(embeddings.embed([question], "query")[0])
    texts = [note.compared for note in missing]
    new_vectors = embeddings.embed(texts, "passage") if missing else ()
    new = {
        note: embeddings.to_half_floats(vector)
        for note, vector in zip(missing, new_vectors, strict=True)
    }
    scores = {
        note: float(np.frombuffer(bytes(raw), np.float16).astype(np.float32) @ question_vector)
        for note, raw in {**saved, **new}.items()
        if len(raw) == 2 * len(question_vector)
    }
    return scores, new, model
