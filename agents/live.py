"""Telling whoever watches. The layer may lose a message: it only wakes readers of rows."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

from agents.models import Run, RunEvent

PATIENCE = 5.0
PING = 1.0


async def publish(topic: str, kind: str, **facts: Any) -> None:
    """One text, because the layer copies whatever it is given, for each who listens."""
    told = {"type": kind, "facts": json.dumps(facts, ensure_ascii=False)}
    await get_channel_layer().group_send(topic, told)


@asynccontextmanager
async def following(topic: str):
    """A channel on which everything told to this topic arrives."""
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(topic, channel)
    try:
        yield channel
    finally:
        await layer.group_discard(topic, channel)


async def ping() -> float:
    """Seconds until the layer hands back what it was given; raises where it does not."""
    layer, began = get_channel_layer(), time.monotonic()
    async with asyncio.timeout(PING):
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
    async with following(run.topic) as channel:
        while True:
            # Asked first: what a run does last is kept before it is over.
            is_live = await Run.objects.live().filter(pk=run.pk).aexists()
            batch = await database_sync_to_async(_after)(run.pk, after)
            for event in batch:
                yield event
                after = event.seq
            if not batch and not is_live:
                return
            if not batch and not await _woken(channel):
                yield None


async def _woken(channel: str) -> bool:
    try:
        async with asyncio.timeout(PATIENCE):
            await get_channel_layer().receive(channel)
    except TimeoutError:
        return False
    return True


def _after(run: int, seq: int) -> list[RunEvent]:
    return list(RunEvent.objects.filter(run=run, seq__gt=seq).order_by("seq")[:500])
