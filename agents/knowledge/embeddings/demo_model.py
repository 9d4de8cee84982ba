"""An embedding without a model: shared words make texts similar. For tests and demos."""

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..retrieval.tokenizer import index_terms

DIMENSION = 256


class DemoEmbedding:
    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return a normalized vector for each text."""
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for term in index_terms(text).split():
                row[crc32(term[:6].encode(errors="replace")) % DIMENSION] += 1
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, 1e-9)
