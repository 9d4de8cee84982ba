"""Embedding and re-ranking models behind the gate."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine import call_context
from agents.llm import model_info, tokens
from agents.llm.litellm_model import EmbeddingClient, RerankClient
from agents.llm.litellm_model.rerank import QUERY_COST

from . import gate, pricing
from .holds import Estimate
from .limits import MILLISECONDS


def embed(client: EmbeddingClient, texts: Sequence[str], deadline: float) -> list[list[float]]:
    """Return a vector for each text; what they used is counted by their tokens."""

    def estimate() -> Estimate:
        sent = sum(tokens.count(text, client.model) for text in texts)
        price = pricing.configured_price(client.model)
        return pricing.estimate_tokens(client.model, sent, own=price)

    with gate.call_now(estimate, model=client.model) as meter:
        sent = meter.tokens
        cost = meter.cost
        meter.tokens = meter.cost = 0  # a failed request is free
        vectors = client.embed(texts, deadline)
        meter.tokens = sent
        meter.cost = cost
        return vectors


@dataclass(frozen=True, slots=True)
class MeteredReranker:
    """A re-ranking model; what it uses counts for the run and for limits."""

    client: RerankClient
    name: str  # our name of the model

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the positions of the texts, the most relevant first."""

        def estimate() -> Estimate:
            return _estimate(self.client.model, [query, *texts])

        async with gate.call(estimate, model=self.name) as meter:
            ranking, usage = await asyncio.to_thread(self.client.order_now, query, list(texts))
            meter.tokens = usage.prompt_tokens + usage.completion_tokens
            if usage.cost is not None:
                meter.cost = pricing.to_micros(usage.cost)
        call_context.current().report_usage(usage.to_dict())
        return ranking


def _estimate(model: str, texts: Sequence[str]) -> Estimate:
    """Return what a request uses: some providers bill each search, others tokens."""
    sent = sum(map(tokens.count, texts))
    query_price = model_info.provider_entry(model).get(QUERY_COST)
    if isinstance(query_price, int | float) and query_price > 0:
        cost = pricing.to_micros(float(query_price))
        seconds = pricing.MODEL_SECONDS * MILLISECONDS
        return Estimate(tokens=sent, cost=cost, seconds=seconds, least_cost=cost)
    return pricing.estimate_tokens(model, sent, own=pricing.configured_price(model))
