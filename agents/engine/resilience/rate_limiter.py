"""Limits how many requests a model gets: at once, per minute, and in tokens."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Literal

from agents.engine.errors import ModelBusy

LimitKind = Literal["concurrency", "requests", "tokens"]
Clock = Callable[[], float]
WINDOW_SECONDS = 60.0
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


class RateLimiter:
    """Admits as many requests as the limits allow, in order of arrival.

    It only knows its own process, and tokens only after they were used.
    """

    def __init__(self, limits: Limits, *, clock: Clock = monotonic) -> None:
        self.limits = limits
        self._inside = 0
        self._requests = _a_minute(limits.requests, clock)
        self._tokens = _a_minute(limits.tokens, clock)
        self._line: deque[asyncio.Event] = deque()
        self._why: LimitKind = "concurrency"

    def blocking_limit(self) -> LimitKind | None:
        """Return the limit that makes a new request wait."""
        return self._why if self._wait_seconds() or self._line else None

    @asynccontextmanager
    async def acquire(self, model: str) -> AsyncIterator[None]:
        """Wait for a slot; raise ModelBusy if there is none in time."""
        await self._wait_for_slot(model)
        try:
            yield
        finally:
            self._inside -= 1
            self._call()

    def spend(self, tokens: int) -> None:
        if self._tokens is not None:
            self._tokens.spend(tokens)

    async def _wait_for_slot(self, model: str) -> None:
        turn = asyncio.Event()
        self._line.append(turn)
        try:
            async with asyncio.timeout(self.limits.patience):
                while seconds := self._wait_seconds() if self._line[0] is turn else inf:
                    await _wait_for_wake(turn, seconds)
            self._inside += 1
            if self._requests is not None:
                self._requests.spend(1)
        except TimeoutError:
            raise ModelBusy(self._busy_message(model)) from None
        finally:
            self._line.remove(turn)
            self._call()

    def _wait_seconds(self) -> float:
        """Return the seconds until a request can be admitted, as far as known; 0 if now."""
        limits = self.limits
        if limits.concurrency is not None and self._inside >= limits.concurrency:
            return self._block("concurrency", inf)
        if self._requests is not None and (seconds := self._requests.seconds_until_free()):
            return self._block("requests", seconds)
        if self._tokens is not None and (seconds := self._tokens.seconds_until_free()):
            return self._block("tokens", seconds)
        return 0

    def _block(self, why: LimitKind, seconds: float) -> float:
        self._why = why
        return seconds

    def _call(self) -> None:
        """Let the first waiting request check again."""
        if self._line:
            self._line[0].set()

    def _busy_message(self, model: str) -> str:
        most, seconds = self.limits.most(self._why), self.limits.patience
        return MESSAGES[self._why].format(model=model, most=most, seconds=seconds)


async def _wait_for_wake(turn: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(turn.wait(), None if seconds == inf else seconds)
    turn.clear()


def _a_minute(most: int | None, clock: Clock) -> TokenBucket | None:
    return None if most is None else TokenBucket(most, most / WINDOW_SECONDS, clock=clock)
