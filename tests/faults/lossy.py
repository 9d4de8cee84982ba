"""Three of ten notices are lost; loaded into the server beside its tools."""

import random

from agents import live

LOST = 0.3
_whole = live.publish


async def _publish(topic, kind, **facts):
    if random.random() >= LOST:
        await _whole(topic, kind, **facts)


live.publish = _publish
