"""Re-ranking models that LiteLLM supports: Cohere, Jina, Voyage, vLLM and others."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.engine import call_context
from agents.llm import parameters as model_parameters

from .. import model_info, usage_limits
from ..media_models import MediaUsage
from ..wire.provider_errors import explain
from .loading import PROVIDER_MODULES, import_modules, warm_up

LOAD_SECONDS = 60
REQUEST_SECONDS = 60.0
QUERY_COST = "input_cost_per_query"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankClient:
    """A re-ranking model at a provider."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the positions of the texts, the most relevant first.

        What the request used counts for the run.
        """
        indexes, usage = await asyncio.to_thread(self.order_now, query, list(texts))
        call_context.current().report_usage(usage.to_dict())
        return indexes

    def order_now(self, query: str, texts: list[str]) -> tuple[list[int], MediaUsage]:
        """Return the positions, and what the request used; this blocks."""
        settings = model_parameters.ModelSettings(
            model=self.model, base_url=self.base_url, api_key=self.api_key
        )
        litellm = warm_up().result(timeout=LOAD_SECONDS)
        if modules := PROVIDER_MODULES.get(model_parameters.provider_prefix(self.model)):
            import_modules(modules).result(timeout=LOAD_SECONDS)
        try:
            response = litellm.rerank(
                model=model_parameters.full_name(self.model),
                query=query,
                documents=texts,
                top_n=len(texts),
                return_documents=False,
                api_key=model_parameters.resolve_key(settings, os.environ),
                api_base=model_parameters.resolve_address(settings, os.environ),
                timeout=REQUEST_SECONDS,
            )
            results = sorted(response.results, key=lambda result: -result["relevance_score"])
            indexes = [int(result["index"]) for result in results]
            return indexes, self._usage(response, query, texts)
        except Exception as error:
            # Not `from error`: a provider's message may contain the key.
            raise explain(error, model=self.model, secrets=(self.api_key,)) from None

    def _usage(self, response: Any, query: str, texts: Sequence[str]) -> MediaUsage:
        """Return what the provider bills: tokens, or searches with a price of their own.

        At most as much as was sent: every text once, together with the query.
        """
        meta = response.meta or {}
        billed = meta.get("billed_units") or {}
        tokens = meta.get("tokens") or {}
        limits = usage_limits.UsageLimits(
            self.model, [{"content": f"{query}\n{text}"} for text in texts], None, {}
        )
        usage = limits.clamp(
            {
                "prompt_tokens": tokens.get("input_tokens") or billed.get("total_tokens"),
                "completion_tokens": tokens.get("output_tokens"),
            }
        )
        excess = dict(usage.get("reported", {}))
        cost = response.hidden_params.get("response_cost") or None  # 0 for unknown prices
        rate = model_info.provider_entry(self.model).get(QUERY_COST)
        if cost and isinstance(rate, int | float) and cost > rate * len(texts) > 0:
            excess["cost"] = cost
            cost = rate * len(texts)
        return MediaUsage(
            model=self.model,
            cost=cost,
            prompt_tokens=usage.get("prompt_tokens") or 0,
            completion_tokens=usage.get("completion_tokens") or 0,
            reported=excess,
        )
