"""Joins equal calls that are in flight: one makes the call, the others wait for its result."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")


@dataclass(slots=True)
class Flight(Generic[Result]):
    """One call and its result, which is None if it can't be shared."""

    result: Result | None = None
    is_alone: bool = False  # its result is for its own run only


class JoinedCalls(Generic[Result]):
    """Calls in flight by key, on each event loop of this process.

    A caller that is cancelled or fails passes the call on to the next one that waits: nothing
    is cancelled or failed for others, and no error outlives its call.
    """

    def __init__(self) -> None:
        self._flights: dict[
            tuple[asyncio.AbstractEventLoop, str], asyncio.Future[Flight[Result]]
        ] = {}

    async def wait(self, key: str) -> Flight[Result] | None:
        """Wait for an equal call; None if there is none, so that this one is to be made."""
        loop = asyncio.get_running_loop()
        while (pending := self._flights.get((loop, key))) is not None:
            await asyncio.wait([pending])
            flight = pending.result()
            if flight.result is not None or flight.is_alone:
                return flight
        return None

    @asynccontextmanager
    async def lead(self, key: str) -> AsyncIterator[Flight[Result]]:
        """Make the call in this block; call it right after `wait` returned None."""
        flight_key = (asyncio.get_running_loop(), key)
        future: asyncio.Future[Flight[Result]] = flight_key[0].create_future()
        flight = Flight[Result]()
        self._flights[flight_key] = future
        try:
            yield flight
        finally:
            if self._flights.get(flight_key) is future:
                del self._flights[flight_key]
            future.set_result(flight)
