"""Loses three of ten notifications; loaded into the server with its tools."""

import random

from agents.runs import pubsub

LOST = 0.3
_whole = pubsub.publish


async def _publish(topic, kind, **facts):
    if random.random() >= LOST:
        await _whole(topic, kind, **facts)


pubsub.publish = _publish
