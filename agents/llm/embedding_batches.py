"""Splits texts into requests that an embedding provider accepts, by number and tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How much fits into one request."""

    texts: int = 64
    tokens: int = 8_000


DEFAULT = BatchLimits()
# As the providers document them, with some room: tokens are estimated.
LIMITS = {
    "openai": BatchLimits(texts=512, tokens=200_000),
    "azure": BatchLimits(texts=512, tokens=200_000),
    "cohere": BatchLimits(texts=96, tokens=40_000),
    "voyage": BatchLimits(texts=128, tokens=80_000),
    "mistral": BatchLimits(texts=64, tokens=12_000),
    "gemini": BatchLimits(texts=100, tokens=16_000),
    "vertex_ai": BatchLimits(texts=100, tokens=16_000),
    "jina_ai": BatchLimits(texts=256, tokens=60_000),
    "bedrock": BatchLimits(texts=1, tokens=8_000),
}


def limits_for(model: str) -> BatchLimits:
    return LIMITS.get(model.partition("/")[0], DEFAULT)


def batches(texts: Sequence[str], limits: BatchLimits) -> Iterator[list[str]]:
    """Yield the texts in order; one that is too long alone is a request of its own."""
    batch: list[str] = []
    size = 0
    for text in texts:
        tokens = estimate(text)
        if batch and (len(batch) == limits.texts or size + tokens > limits.tokens):
            yield batch
            batch = []
            size = 0
        batch.append(text)
        size += tokens
    if batch:
        yield batch


def estimate(text: str) -> int:
    """Return about how many tokens a text has: few per word, one per character of Japanese."""
    wide = sum(not char.isascii() for char in text)
    return (len(text) - wide) // 3 + wide + 1
