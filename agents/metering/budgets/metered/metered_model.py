"""A model whose requests pass the gate: all chat models are called through this."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from copy import copy
from typing import Any, Self

from agents.engine.errors import AgentError, ModelTimeout
from agents.engine.planner import LLM, for_short_reply
from agents.engine.turn import Chunk, has_counts, reported_usage
from agents.llm import tokens
from agents.llm.model_info import Price

from .. import gate, limits, pricing
from ..measures import HELD, Estimate, Meter
from ..payers import Payer


class MeteredModel:
    """Reserves what a request may use, and counts what it has used however it ends."""

    def __init__(
        self,
        llm: LLM,
        name: str,
        model: str,
        *,
        price: Price | None = None,
        payer: Payer | None = None,
    ) -> None:
        """`name` is ours, `model` the provider's; without a payer, the task's pays."""
        self.llm = llm
        self.name = name
        self.price = price
        self.payer = payer
        self.provider_model = model
        self.route: str = getattr(llm, "route", "")
        self.base_url: str | None = getattr(llm, "base_url", None)
        self.account: str = getattr(llm, "account", "")
        self.batch_seconds: float = getattr(llm, "batch_seconds", 0)
        self.model: str = getattr(llm, "model", "")

    def for_short_reply(self) -> Self:
        shortened = copy(self)
        shortened.llm = for_short_reply(self.llm)
        return shortened

    def stream(
        self,
        *,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        **parameters: Any,
    ) -> AsyncIterator[Chunk]:
        """Stream a reply; raise QuotaExceeded before the request if a limit refuses it."""
        request = {"model": model, "messages": messages, "tools": tools, **parameters}
        if not limits.has_limits(HELD):
            return self.llm.stream(**request)
        return self._stream_metered(request)

    async def _stream_metered(self, request: dict[str, Any]) -> AsyncGenerator[Chunk, None]:
        name = self.provider_model
        price = self.price
        parameters = {
            k: v for k, v in request.items() if k not in {"model", "messages", "tools"}
        }

        def estimate() -> Estimate:
            return pricing.estimate_chat(
                name, request["messages"], request["tools"], parameters, price
            )

        async with gate.call(estimate, model=self.name, payer=self.payer) as meter:
            reading = _Reading(meter, name, price)
            chunks = self.llm.stream(**request)
            try:
                async for chunk in chunks:
                    reading.add(chunk)
                    yield chunk
            except AgentError as error:
                if not reading.has_begun and not isinstance(error, ModelTimeout):
                    meter.tokens = meter.cost = 0  # it was rejected
                raise
            finally:
                if (close := getattr(chunks, "aclose", None)) is not None:
                    await close()


class _Reading:
    """Keeps a meter up to date: what is reported, or an estimate of what was received."""

    def __init__(self, meter: Meter, model: str, price: Price | None) -> None:
        self.meter = meter
        self.prompt_tokens = meter.tokens
        self.rates = pricing.find_price(model, price, meter.tokens) or pricing.FREE
        self.received = 0
        self.has_begun = False

    def add(self, chunk: Chunk) -> None:
        self.has_begun = True
        reported = chunk.get("usage")
        usage = reported_usage(reported) if isinstance(reported, Mapping) else {}
        if has_counts(usage):
            cost = usage.get("cost")
            if cost is None:
                cost = self.rates.of(usage)
            self.meter.is_reported = True
            self.meter.tokens = usage["prompt_tokens"] + usage["completion_tokens"]
            self.meter.cost = pricing.to_micros(cost)
        elif not self.meter.is_reported:
            for choice in chunk.get("choices") or ():
                delta = choice.get("delta") or {}
                texts = [delta.get("content"), delta.get("reasoning_content")]
                for call in delta.get("tool_calls") or ():
                    texts.append((call.get("function") or {}).get("arguments"))
                self.received += sum(
                    tokens.estimate(text) for text in texts if isinstance(text, str) and text
                )
            self.meter.tokens = self.prompt_tokens + self.received
            cost = self.prompt_tokens * self.rates.input + self.received * self.rates.output
            self.meter.cost = pricing.to_micros(cost)
