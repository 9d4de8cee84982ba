"""Vectors from any embedding model that LiteLLM supports."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from agents.engine.errors import AgentError
from agents.engine.resilience import RetryPolicy
from agents.llm import parameters as model_parameters

from ..embedding_batches import batches, limits_for
from ..wire.provider_errors import explain
from .loading import PROVIDER_MODULES, import_modules, warm_up


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingClient:
    """An embedding model at a provider. It blocks, so a thread calls it."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    # Of providers that need more than a URL and a key, under LiteLLM's names.
    options: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    retries: int = 2

    def embed(self, texts: Sequence[str], deadline: float = 60.0) -> list[list[float]]:
        """Return a vector for each text; `deadline` is for each batch with its retries."""
        policy = RetryPolicy(max_retries=self.retries)
        vectors: list[list[float]] = []
        for batch in batches(texts, limits_for(self.model)):
            until = time.monotonic() + deadline
            for attempt in count(1):
                try:
                    vectors += self._request(batch, max(1.0, until - time.monotonic()))
                    break
                except AgentError as error:
                    pause = policy.wait(error, attempt)
                    if pause is None or time.monotonic() + pause >= until:
                        raise
                    time.sleep(pause)
        return vectors

    def _request(self, texts: list[str], seconds: float) -> list[list[float]]:
        settings = model_parameters.ModelSettings(
            model=self.model,
            base_url=self.base_url,
            api_key=self.api_key,
            options=self.options,
            secrets=self.secrets,
        )
        litellm = warm_up().result(timeout=60)
        if modules := PROVIDER_MODULES.get(model_parameters.provider_prefix(self.model)):
            import_modules(modules).result(timeout=60)
        try:
            response = litellm.embedding(
                **self.options,
                **self.secrets,
                **model_parameters.blank_credentials(settings),
                model=model_parameters.full_name(self.model),
                input=texts,
                api_key=model_parameters.resolve_key(settings, os.environ),
                api_base=model_parameters.resolve_address(settings, os.environ),
                timeout=seconds,
                max_retries=0,
                num_retries=0,
            )
        except Exception as error:
            # Not `from error`: a provider's message may contain the key, and logs print causes.
            secrets = (self.api_key, *self.secrets.values())
            raise explain(error, model=self.model, secrets=secrets) from None
        rows = sorted(response.data, key=lambda row: int(row["index"]))
        return [[float(number) for number in row["embedding"]] for row in rows]
