"""A model as configured by an administrator."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from copy import copy
from typing import Any, Self

from agents.engine.errors import ModelError
from agents.engine.planner import LLM, for_short_reply
from agents.engine.turn import Chunk

from . import prompt_caching
from .model_info import Price


class ConfiguredModel:
    """A model with its own name here, and possibly its own price."""

    def __init__(self, llm: LLM, model: str, price: Price | None = None) -> None:
        self.llm = llm
        self.model = model
        self.price = price
        self.route: str = getattr(llm, "route", "")
        self.base_url: str | None = getattr(llm, "base_url", None)
        self.account: str = getattr(llm, "account", "")
        self.batch_seconds: float = getattr(llm, "batch_seconds", 0)

    def for_short_reply(self) -> Self:
        model = copy(self)
        model.llm = for_short_reply(self.llm)
        return model

    def stream(
        self,
        *,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        **parameters: Any,
    ) -> AsyncIterator[Chunk]:
        """Stream a reply; `model` is our name, and the provider gets its own."""
        request = {"model": self.model, "messages": messages, "tools": tools, **parameters}
        chunks = self.llm.stream(**request)
        return _add_costs(chunks, self.price) if self.price else chunks


class UnavailableModel:
    """A model that can't be called, and says why."""

    def __init__(self, error: ModelError) -> None:
        self.error = error

    async def stream(self, **request: Any) -> AsyncGenerator[Chunk, None]:
        raise self.error
        yield {}  # makes it a generator


async def _add_costs(chunks: AsyncIterator[Chunk], price: Price) -> AsyncGenerator[Chunk, None]:
    """Add costs by the configured price, which overrides the provider's and the table's."""
    try:
        async for chunk in chunks:
            usage = chunk.get("usage")
            if (
                usage
                and isinstance(usage, Mapping)
                and isinstance(usage.get("prompt_tokens"), int)
            ):
                priced = {**usage, "cost": price.of(usage)}
                chunk = {**chunk, "usage": prompt_caching.with_savings(priced, price)}
            yield chunk
    finally:
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()
