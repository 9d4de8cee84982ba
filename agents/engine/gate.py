"""How many may ask one model: at once, in a minute, and for how many tokens."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Literal

from .errors import ModelBusy

Limit = Literal["concurrency", "requests", "tokens"]
Spent = tuple[float, int]  # when, and how much
MINUTE = 60.0
SENTENCES: dict[Limit, str] = {
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


class Gate:
    """Lets in as many as the limits allow, in the order in which they came.

    It knows of one process only, and of tokens only once they were used.
    """

    def __init__(self, limits: Limits, *, clock: Callable[[], float] = monotonic) -> None:
        self.limits = limits
        self.clock = clock
        self._inside = 0
        self._asked: deque[Spent] = deque()
        self._used: deque[Spent] = deque()
        self._line: deque[asyncio.Event] = deque()
        self._why: Limit = "concurrency"

    def held_by(self) -> Limit | None:
        """The limit because of which whoever comes now has to wait."""
        return self._why if self._seconds() or self._line else None

    @asynccontextmanager
    async def entered(self, model: str) -> AsyncIterator[None]:
        """Raises ModelBusy where the turn does not come in time."""
        await self._admitted(model)
        try:
            yield
        finally:
            self._inside -= 1
            self._call()

    def spend(self, tokens: int) -> None:
        if self.limits.tokens is not None:
            self._used.append((self.clock(), tokens))

    async def _admitted(self, model: str) -> None:
        turn = asyncio.Event()
        self._line.append(turn)
        try:
            async with asyncio.timeout(self.limits.patience):
                while seconds := self._seconds() if self._line[0] is turn else inf:
                    await _rung(turn, seconds)
            self._inside += 1
            self._asked.append((self.clock(), 1))
        except TimeoutError:
            raise ModelBusy(self._sentence(model)) from None
        finally:
            self._line.remove(turn)
            self._call()

    def _seconds(self) -> float:
        """How long nobody can be let in, as far as that is known now; 0 where somebody can."""
        now, limits = self.clock(), self.limits
        asked, used = _lately(self._asked, now), _lately(self._used, now)
        if limits.concurrency is not None and self._inside >= limits.concurrency:
            return self._held("concurrency", inf)
        if limits.requests is not None and asked >= limits.requests:
            return self._held("requests", self._asked[0][0] + MINUTE - now)
        if limits.tokens is not None and used >= limits.tokens:
            return self._held("tokens", self._used[0][0] + MINUTE - now)
        return 0

    def _held(self, why: Limit, seconds: float) -> float:
        self._why = why
        return seconds

    def _call(self) -> None:
        """Let the first in line look again."""
        if self._line:
            self._line[0].set()

    def _sentence(self, model: str) -> str:
        begin = SENTENCES[self._why].format(model=model, most=self.limits.most(self._why))
        return f"{begin} {self.limits.patience:g} seconds."


async def _rung(turn: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(turn.wait(), None if seconds == inf else seconds)
    turn.clear()


def _lately(spent: deque[Spent], now: float) -> int:
    """What of it was spent within the last minute; what was before is forgotten."""
    while spent and spent[0][0] <= now - MINUTE:
        spent.popleft()
    return sum(amount for _, amount in spent)
