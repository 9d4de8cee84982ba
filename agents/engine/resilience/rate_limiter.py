"""Limits how many requests a model gets: at once, per minute, and in tokens.

`RateLimiter` is what a model call needs; the product's counts over all processes.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from agents.engine.errors import ModelBusy

from ..sentences import Sentence
from ..sentences import Sentence as _

LimitKind = Literal["concurrency", "requests", "tokens"]
ALL_PLACES = 10  # further back, only larger changes are reported
MESSAGES: dict[LimitKind, Sentence] = {
    "concurrency": _("%(model)s is busy: all %(most)s slots stayed in use for %(seconds)s s."),
    "requests": _(
        "%(model)s stayed at its limit of %(most)s requests per minute for %(seconds)s s."
    ),
    "tokens": _(
        "%(model)s stayed at its limit of %(most)s tokens per minute for %(seconds)s s."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a model; None means no limit. A request waits at most `patience` seconds."""

    concurrency: int | None = None
    requests: int | None = None  # per minute
    tokens: int | None = None  # per minute
    patience: float = 120.0

    def __bool__(self) -> bool:
        limits = (self.concurrency, self.requests, self.tokens)
        return any(limit is not None for limit in limits)

    def most(self, limit: LimitKind) -> int:
        return getattr(self, limit) or 0

    def busy(self, model: str, limit: LimitKind) -> ModelBusy:
        """Return the error of a request that has waited long enough."""
        message = MESSAGES[limit].fill(
            model=model, most=self.most(limit), seconds=f"{self.patience:g}"
        )
        return ModelBusy(message)


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A request's place in a model's line, and the limit that it waits for."""

    place: int  # 1 is next
    limit: LimitKind

    def is_news(self, last: "QueuePlace | None") -> bool:
        """Whether to report it; far back, not every step forward."""
        if last is None or self.limit != last.limit:
            return True
        return self.place != last.place and (
            self.place <= ALL_PLACES or abs(self.place - last.place) * 10 >= last.place
        )


class SlotRequest(Protocol):
    """A request for a slot: waits in line, then has the slot until it is left."""

    def places(self) -> AsyncGenerator[QueuePlace, None]:
        """Yield each new place in line; ends with the slot, or raises ModelBusy."""
        ...

    def spend(self, tokens: int) -> None:
        """Count the tokens that the request has used."""
        ...


class RateLimiter(Protocol):
    """Admits as many requests as the limits allow, in order of arrival."""

    limits: Limits

    def request(self, model: str) -> AbstractAsyncContextManager[SlotRequest]:
        """Join the line; leaving the block frees the slot, or the place in line."""
        ...


@asynccontextmanager
async def acquire_slot(limiter: RateLimiter, model: str) -> AsyncIterator[SlotRequest]:
    """Wait for a slot without reporting places; raise ModelBusy if there is none in time."""
    async with limiter.request(model) as slot:
        async with aclosing(slot.places()) as places:
            async for _place in places:
                pass
        yield slot
