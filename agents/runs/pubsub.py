"""Telling whoever watches: in this process by a call, in others through the layer.

The layer may lose a message: it only wakes readers of rows.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from channels.layers import InMemoryChannelLayer, get_channel_layer

from agents.db import database
from agents.models import Run, RunEvent

from .leases import PROCESS_TOKEN

logger = logging.getLogger(__name__)

IDLE_SECONDS = 5.0
RETRY_SECONDS = 1.0
PING_TIMEOUT_SECONDS = 1.0
SEND_TIMEOUT_SECONDS, BACKOFF_SECONDS = 0.5, 3.0
JOIN_TIMEOUT_SECONDS = 1.0
REFRESH_KIND = "look.again"

Hear = Callable[[str, dict[str, Any]], None]


def person_topic(pk: int) -> str:
    """The topic on which whatever somebody looks at is told to ask again what they may see."""
    return f"person.{pk}"


async def publish(topic: str, kind: str, **facts: Any) -> None:
    """All who hear it share these facts, and leave them as they are."""
    if (here := _topics.get(topic)) is not None:
        here.tell(kind, facts)
    if _has_shared_layer():
        text = json.dumps(facts, ensure_ascii=False)
        told = {"type": "told", "by": PROCESS_TOKEN, "kind": kind, "facts": text}
        await _others.tell(topic, told)


class _RemoteProcesses:
    """Those in other processes. They read the rows by themselves, told or not: a layer that is
    away must cost nobody here more than a moment, now and then."""

    def __init__(self) -> None:
        self.away_until = 0.0

    async def tell(self, topic: str, told: dict[str, Any]) -> None:
        if time.monotonic() < self.away_until:
            return
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                await get_channel_layer().group_send(topic, told)
        except Exception as error:  # whatever it was, it is not worth a run
            self.away_until = time.monotonic() + BACKOFF_SECONDS
            logger.warning("Can't publish to other processes: %r", error)


_others = _RemoteProcesses()


@asynccontextmanager
async def subscribe(topic: str, hear: Hear) -> AsyncIterator[None]:
    """Have this called with everything that is told to the topic, here or elsewhere."""
    here = _topics.setdefault(topic, _Topic(topic))
    here.listeners.append(hear)
    try:
        if _has_shared_layer():
            await here.connect()
        yield
    finally:
        here.listeners.remove(hear)
        if not here.listeners:
            _topics.pop(topic, None)
            await here.disconnect()


class _Topic:
    """Those in this process who follow a topic, and their one wire to other processes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.listeners: list[Hear] = []
        self.wire: asyncio.Task[None] | None = None
        self.is_joined = asyncio.Event()

    def tell(self, kind: str, facts: dict[str, Any]) -> None:
        for hear in tuple(self.listeners):
            hear(kind, facts)

    async def connect(self) -> None:
        """Come back once whatever is told elsewhere arrives here, too, or will soon."""
        self.wire = self.wire or asyncio.create_task(self._listen())
        try:
            async with asyncio.timeout(JOIN_TIMEOUT_SECONDS):
                await self.is_joined.wait()
        except TimeoutError:
            self.is_joined.set()  # late: whoever listens then looks at the rows again

    async def disconnect(self) -> None:
        if self.wire is not None:
            self.wire.cancel()
            await asyncio.wait([self.wire], timeout=JOIN_TIMEOUT_SECONDS)

    async def _listen(self) -> None:
        while True:
            try:
                await self._receive_remote()
            except Exception:  # whatever it was, it is tried again, and the rows can be read
                logger.exception(
                    "Can't receive messages from other processes on %s.", self.name
                )
                self.is_joined.set()
                await asyncio.sleep(RETRY_SECONDS)

    async def _receive_remote(self) -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        try:
            await layer.group_add(self.name, channel)
            if self.is_joined.is_set():
                self.tell(REFRESH_KIND, {})  # nobody knows what was told meanwhile
            self.is_joined.set()
            while True:
                told = await layer.receive(channel)
                if told["by"] != PROCESS_TOKEN:  # what it says itself is heard already
                    self.tell(told["kind"], json.loads(told["facts"]))
        finally:
            await layer.group_discard(self.name, channel)


_topics: dict[str, _Topic] = {}


def _has_shared_layer() -> bool:
    """Whether there is a layer to reach them by: one in memory is for this process alone."""
    return not isinstance(get_channel_layer(), InMemoryChannelLayer)


async def ping() -> float:
    """Seconds until the layer hands back what it was given; raises where it does not."""
    layer, began = get_channel_layer(), time.monotonic()
    async with asyncio.timeout(PING_TIMEOUT_SECONDS):
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "ping"})
        await layer.receive(channel)
    took = time.monotonic() - began
    # A layer lets go of a channel when somebody gives up waiting for it, and not before.
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            await layer.receive(channel)
    return took


async def events(run: Run, after: int = 0) -> AsyncIterator[RunEvent | None]:
    """The events of a run as they are kept, to its last; None when none came for a while."""
    woken = asyncio.Event()
    async with subscribe(run.topic, lambda kind, facts: woken.set()):
        while True:
            woken.clear()
            # Asked first: what a run does last is kept before it is over.
            is_live = await Run.objects.live().filter(pk=run.pk).aexists()
            batch = await database.run(_events_after, run.pk, after)
            for event in batch:
                yield event
                after = event.seq
            if not batch and not is_live:
                return
            if not batch and not await _wait_until_set(woken):
                yield None


async def _wait_until_set(woken: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(IDLE_SECONDS):
            await woken.wait()
    except TimeoutError:
        return False
    return True


def _events_after(run: int, seq: int) -> list[RunEvent]:
    return list(RunEvent.objects.filter(run=run, seq__gt=seq).order_by("seq")[:500])
