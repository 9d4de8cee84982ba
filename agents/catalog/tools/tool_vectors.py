"""Compares a question with tools by meaning; each tool's text is embedded once per process."""

import threading
from collections.abc import Mapping

from agents.knowledge import embeddings

MAX_VECTORS = 5_000
BATCH = 64
LOCK_SECONDS = 3.0
VECTORS: dict[tuple[str, str], embeddings.Vector] = {}
LOCK = threading.Lock()


def closest(question: str, texts: Mapping[str, str]) -> list[str]:
    """Return the names of the texts, those closest in meaning to the question first.

    Blocks while new texts are embedded; raises EmbeddingUnavailable.
    """
    import numpy as np

    model = embeddings.configured_model()
    # Two questions at once don't embed the same tools.
    if not LOCK.acquire(timeout=LOCK_SECONDS):
        raise embeddings.EmbeddingUnavailable("The tools are being embedded.")
    try:
        missing = sorted({text for text in texts.values() if (model, text) not in VECTORS})
        if len(VECTORS) + len(missing) > MAX_VECTORS:
            VECTORS.clear()
            missing = sorted(set(texts.values()))
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            for text, vector in zip(batch, embeddings.embed(batch), strict=True):
                VECTORS[model, text] = vector
    finally:
        LOCK.release()
    question_vector = embeddings.embed([question], "query")[0]
    matrix = np.asarray([VECTORS[model, text] for text in texts.values()], np.float32)
    order = np.argsort(-(matrix @ question_vector), kind="stable")
    names = list(texts)
    return [names[index] for index in order]
