"""An embedding without a model: shared words make texts similar. For tests and demos."""

from zlib import crc32

from ..retrieval.tokenizer import index_terms
from .vectors import Vectors, normalized

DIMENSION = 256


class DemoEmbedding:
    def embed(self, texts: list[str]) -> Vectors:
        """Return a normalized vector for each text."""
        vectors = []
        for text in texts:
            counts = [0] * DIMENSION
            for term in index_terms(text).split():
                counts[crc32(term[:6].encode(errors="replace")) % DIMENSION] += 1
            vectors.append(normalized(counts))
        return vectors
