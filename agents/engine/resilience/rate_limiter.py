"""Limits how many requests a model gets: at once, per minute, and in tokens.

`RateLimiter` is what a model call needs; the product's counts over all processes.
`LocalRateLimiter` counts in this process, for the engine as a library.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Literal, Protocol

from agents.engine.errors import ModelBusy

LimitKind = Literal["concurrency", "requests", "tokens"]
Clock = Callable[[], float]
WINDOW_SECONDS = 60.0
PLACE_SECONDS = 1.0  # how often a place in line is looked up
ALL_PLACES = 10  # further back, only larger changes are reported
ROUNDING = 1e-9  # of a permit; refilled floats are rarely whole
MESSAGES: dict[LimitKind, str] = {
    "concurrency": "{model} is busy: all {most} slots stayed in use for {seconds:g} s.",
    "requests": "{model} stayed at its limit of {most} requests per minute for {seconds:g} s.",
    "tokens": "{model} stayed at its limit of {most} tokens per minute for {seconds:g} s.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a model; None means no limit. A request waits at most `patience` seconds."""

    concurrency: int | None = None
    requests: int | None = None  # per minute
    tokens: int | None = None  # per minute
    patience: float = 120.0

    def __bool__(self) -> bool:
        return any(most is not None for most in (self.concurrency, self.requests, self.tokens))

    def most(self, limit: LimitKind) -> int:
        return getattr(self, limit) or 0

    def busy(self, model: str, limit: LimitKind) -> ModelBusy:
        """Return the error of a request that has waited long enough."""
        most, seconds = self.most(limit), self.patience
        return ModelBusy(MESSAGES[limit].format(model=model, most=most, seconds=seconds))


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


class TokenBucket:
    """Holds up to `capacity` permits and refills at a steady rate, as providers count."""

    def __init__(self, capacity: float, per_second: float, *, clock: Clock = monotonic) -> None:
        self.capacity = capacity
        self.per_second = per_second
        self._clock = clock
        self._permits = float(capacity)
        self._filled_at = clock()

    def allows(self) -> bool:
        """Take a permit if there is one."""
        if self.seconds_until_free() > 0:
            return False
        self.spend(1)
        return True

    def spend(self, permits: float) -> None:
        """Take permits even if there are too few; the debt is refilled first."""
        self._fill()
        self._permits -= permits

    def seconds_until_free(self) -> float:
        """Return the seconds until a whole permit is available; 0 if there is one."""
        self._fill()
        missing = 1 - self._permits
        return missing / self.per_second if missing > ROUNDING else 0.0

    def _fill(self) -> None:
        now = self._clock()
        grown = self._permits + (now - self._filled_at) * self.per_second
        self._permits, self._filled_at = min(self.capacity, grown), now


class LocalRateLimiter:
    """Counts in this process, and tokens only after they were used."""

    def __init__(self, limits: Limits, *, clock: Clock = monotonic) -> None:
        self.limits = limits
        self._inside = 0
        self._request_bucket = _bucket_per_minute(limits.requests, clock)
        self._token_bucket = _bucket_per_minute(limits.tokens, clock)
        self._line: deque[LocalRequest] = deque()
        self._blocking_limit: LimitKind = "concurrency"

    @asynccontextmanager
    async def request(self, model: str) -> AsyncIterator["LocalRequest"]:
        local_request = LocalRequest(self, model)
        self._line.append(local_request)
        try:
            yield local_request
        finally:
            if local_request.is_inside:
                self._inside -= 1
            else:
                self._line.remove(local_request)
            self.wake_first()

    def blocking_limit(self) -> LimitKind | None:
        """Return the limit that makes a new request wait."""
        return self._blocking_limit if self._wait_seconds() or self._line else None

    def spend(self, tokens: int) -> None:
        if self._token_bucket is not None:
            self._token_bucket.spend(tokens)

    def place(self, request: "LocalRequest") -> QueuePlace:
        return QueuePlace(self._line.index(request) + 1, self._blocking_limit)

    def seconds_until(self, request: "LocalRequest") -> float:
        """Return how long a request has to wait, as far as known; 0 if it is its turn."""
        seconds = self._wait_seconds()
        return seconds if self._line[0] is request else inf

    def admit(self, request: "LocalRequest") -> None:
        self._line.remove(request)
        request.is_inside = True
        self._inside += 1
        if self._request_bucket is not None:
            self._request_bucket.spend(1)
        self.wake_first()

    def wake_first(self) -> None:
        """Let the first waiting request check again."""
        if self._line:
            self._line[0].wake.set()

    def _wait_seconds(self) -> float:
        """Return the seconds until a request can be admitted, as far as known; 0 if now."""
        limits = self.limits
        if limits.concurrency is not None and self._inside >= limits.concurrency:
            return self._block("concurrency", inf)
        if self._request_bucket is not None and (
            seconds := self._request_bucket.seconds_until_free()
        ):
            return self._block("requests", seconds)
        if self._token_bucket is not None and (
            seconds := self._token_bucket.seconds_until_free()
        ):
            return self._block("tokens", seconds)
        return 0

    def _block(self, limit: LimitKind, seconds: float) -> float:
        self._blocking_limit = limit
        return seconds


class LocalRequest:
    """A request in the line of this process."""

    def __init__(self, limiter: LocalRateLimiter, model: str) -> None:
        self.limiter = limiter
        self.model = model
        self.wake = asyncio.Event()
        self.is_inside = False

    async def places(self) -> AsyncGenerator[QueuePlace, None]:
        limiter = self.limiter
        last = None
        deadline = monotonic() + limiter.limits.patience
        while seconds := limiter.seconds_until(self):
            place = limiter.place(self)
            if place.is_news(last):
                last = place
                yield place
                continue
            seconds_left = deadline - monotonic()
            if seconds_left <= 0:
                raise limiter.limits.busy(self.model, place.limit)
            await _wait_for_wake(self.wake, min(seconds, PLACE_SECONDS, seconds_left))
        limiter.admit(self)

    def spend(self, tokens: int) -> None:
        self.limiter.spend(tokens)


async def _wait_for_wake(wake: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(wake.wait(), seconds)
    wake.clear()


def _bucket_per_minute(most: int | None, clock: Clock) -> TokenBucket | None:
    return None if most is None else TokenBucket(most, most / WINDOW_SECONDS, clock=clock)
