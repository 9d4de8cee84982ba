"""Embedding and re-ranking models behind the gate."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine import call_context
from agents.llm import model_info, tokens
from agents.llm.litellm_model import EmbeddingClient, RerankClient
from agents.llm.litellm_model.rerank import QUERY_COST

from .. import gate, pricing
from ..measures import MILLISECONDS, Estimate


def embed(client: EmbeddingClient, texts: Sequence[str], deadline: float) -> list[list[float]]:
    """Return a vector for each text; what they used is counted by their tokens."""

    def estimate() -> Estimate:
        prompt_tokens = sum(tokens.count(text, client.model) for text in texts)
        price = pricing.configured_price(client.model)
        return pricing.estimate_tokens(client.model, prompt_tokens, own=price)

    with gate.call_now(estimate, model=client.model) as meter:
        prompt_tokens = meter.tokens
        cost = meter.cost
        meter.tokens = meter.cost = 0  # a failed request is free
        vectors = client.embed(texts, deadline)
        meter.tokens = prompt_tokens
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
            model = self.client.model
            prompt_tokens = sum(map(tokens.count, [query, *texts]))
            # Some providers bill each search, others tokens.
            query_price = model_info.provider_entry(model).get(QUERY_COST)
            if isinstance(query_price, int | float) and query_price > 0:
                cost = pricing.to_micros(float(query_price))
                seconds = pricing.MODEL_SECONDS * MILLISECONDS
                return Estimate(
                    tokens=prompt_tokens, cost=cost, seconds=seconds, least_cost=cost
                )
            own_price = pricing.configured_price(model)
            return pricing.estimate_tokens(model, prompt_tokens, own=own_price)

        async with gate.call(estimate, model=self.name) as meter:
            ranking, usage = await asyncio.to_thread(self.client.order_now, query, list(texts))
            meter.tokens = usage.prompt_tokens + usage.completion_tokens
            if usage.cost is not None:
                meter.cost = pricing.to_micros(usage.cost)
        call_context.current().report_usage(usage.to_dict())
        return ranking
