"""What it takes to index the documents again for another embedding model."""

from dataclasses import dataclass

from django.db.models import Count

from agents.db.installation import default_models
from agents.llm import model_info, tokens
from agents.models import Chunk, EmbeddingIndex

from .. import embeddings
from . import vector_index
from .windows import VERSION, texts_to_embed

SAMPLE = 100  # passages whose tokens are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexEstimate:
    """How much lacks a vector of the model; `cost` is None if its price isn't known."""

    passages: int
    documents: int
    cost: float | None


def estimate(model: str) -> ReindexEstimate:
    """Return what would be indexed for this model, and roughly for how many dollars."""
    index = EmbeddingIndex.objects.filter(model=model, version=VERSION).order_by("pk").last()
    chunks = Chunk.objects.all() if index is None else vector_index.missing(index)
    counts = chunks.aggregate(
        passages=Count("pk"), documents=Count("document_id", distinct=True)
    )
    cost: float | None = 0.0
    if model not in {embeddings.LOCAL, embeddings.DEMO}:
        connected = default_models.parse(model)
        price = model_info.price(connected.model if connected else model)
        sample = list(chunks.select_related("document").order_by("pk")[:SAMPLE])
        sampled_tokens = sum(
            tokens.estimate(text)
            for chunk in sample
            for text in texts_to_embed(chunk.document.title, chunk.heading, chunk.text)
        )
        total_tokens = sampled_tokens * counts["passages"] / max(1, len(sample))
        cost = price.input * total_tokens if price else None
    return ReindexEstimate(**counts, cost=cost)
