"""Lets a few runs start at a time, in order of arrival.

Starting takes several times the work of a token. When many start at once they would all be
late, and so would the tokens of those that have begun.
"""

import asyncio

AT_ONCE = 4
# Then a start waits for a server, for example, and others go on.
MAX_SECONDS = 0.2


class Admission:
    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)

    async def enter(self) -> "Place":
        """Wait for a place among those that start."""
        await self._places.acquire()
        return Place(self._places)


class Place:
    """A place that is left once, or that is taken away after a while."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._is_taken = True
        self._timer = asyncio.get_running_loop().call_later(MAX_SECONDS, self.leave)

    def leave(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._timer.cancel()
            self._places.release()
