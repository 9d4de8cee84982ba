"""How many may ask one model: at once, in a minute, and for how many tokens."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Literal

from agents.engine.errors import ModelBusy

Limit = Literal["concurrency", "requests", "tokens"]
Clock = Callable[[], float]
WINDOW_SECONDS = 60.0
ROUNDING = 1e-9  # of a permit: floats that were refilled are seldom whole
MESSAGES: dict[Limit, str] = {
    "concurrency": "{model} answers at most {most} at once, and the turn did not come within",
    "requests": "{model} may be asked {most} times a minute, and the turn did not come within",
    "tokens": "{model} may use {most} tokens a minute, and the turn did not come within",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """None is no limit. Whoever has waited for `patience` seconds is sent away."""

    concurrency: int | None = None
    requests: int | None = None  # a minute
    tokens: int | None = None  # a minute
    patience: float = 120.0

    def __bool__(self) -> bool:
        return any(most is not None for most in (self.concurrency, self.requests, self.tokens))

    def most(self, limit: Limit) -> int:
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
        """Take permits even if there are too few: the debt is refilled first."""
        self._fill()
        self._permits -= permits

    def seconds_until_free(self) -> float:
        """Return how long it takes until there is a whole permit; 0 if there is one."""
        self._fill()
        missing = 1 - self._permits
        return missing / self.per_second if missing > ROUNDING else 0.0

    def _fill(self) -> None:
        now = self._clock()
        grown = self._permits + (now - self._filled_at) * self.per_second
        self._permits, self._filled_at = min(self.capacity, grown), now


class RateLimiter:
    """Lets in as many as the limits allow, in the order in which they came.

    It knows of one process only, and of tokens only once they were used.
    """

    def __init__(self, limits: Limits, *, clock: Clock = monotonic) -> None:
        self.limits = limits
        self._inside = 0
        self._requests = _a_minute(limits.requests, clock)
        self._tokens = _a_minute(limits.tokens, clock)
        self._line: deque[asyncio.Event] = deque()
        self._why: Limit = "concurrency"

    def blocking_limit(self) -> Limit | None:
        """The limit because of which whoever comes now has to wait."""
        return self._why if self._wait_seconds() or self._line else None

    @asynccontextmanager
    async def acquire(self, model: str) -> AsyncIterator[None]:
        """Raises ModelBusy where the turn does not come in time."""
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
        """How long nobody can be let in, as far as that is known now; 0 where somebody can."""
        limits = self.limits
        if limits.concurrency is not None and self._inside >= limits.concurrency:
            return self._block("concurrency", inf)
        if self._requests is not None and (seconds := self._requests.seconds_until_free()):
            return self._block("requests", seconds)
        if self._tokens is not None and (seconds := self._tokens.seconds_until_free()):
            return self._block("tokens", seconds)
        return 0

    def _block(self, why: Limit, seconds: float) -> float:
        self._why = why
        return seconds

    def _call(self) -> None:
        """Let the first in line look again."""
        if self._line:
            self._line[0].set()

    def _busy_message(self, model: str) -> str:
        begin = MESSAGES[self._why].format(model=model, most=self.limits.most(self._why))
        return f"{begin} {self.limits.patience:g} seconds."


async def _wait_for_wake(turn: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(turn.wait(), None if seconds == inf else seconds)
    turn.clear()


def _a_minute(most: int | None, clock: Clock) -> TokenBucket | None:
    return None if most is None else TokenBucket(most, most / WINDOW_SECONDS, clock=clock)
