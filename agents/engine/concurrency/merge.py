"""Merges several event streams into one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from agents.engine.events import Event

Events = AsyncGenerator[Event, None]
MergedItem = tuple[str, Event | None, "asyncio.Future[None] | None"]


class EventMerger:
    """Runs named event streams concurrently and yields their events one at a time.

    A stream advances only after its last event was consumed, so what it announces is recorded
    before it happens.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._items: asyncio.Queue[MergedItem] = asyncio.Queue()
        self._taken: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, name: str, events: Events) -> None:
        self._tasks[name] = asyncio.create_task(self._forward(name, events))

    async def next(self) -> tuple[str, Event | None]:
        """Return the next event of any stream, or None when that stream has ended."""
        if self._taken is not None:
            self._taken.set_result(None)
        name, event, self._taken = await self._items.get()
        if event is None:
            await self._tasks.pop(name)
        return name, event

    async def close(self) -> None:
        """Cancel the remaining streams and wait until they have ended."""
        for strand in self._tasks.values():
            strand.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def _forward(self, name: str, events: Events) -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    consumed = asyncio.get_running_loop().create_future()
                    self._items.put_nowait((name, event, consumed))
                    await consumed
        finally:
            self._items.put_nowait((name, None, None))
