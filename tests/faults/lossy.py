"""A channel layer that loses three of ten messages; loaded into the server with its tools."""

import random

from channels.layers import InMemoryChannelLayer

LOST = 0.3
_whole = InMemoryChannelLayer.send


async def _send(self, channel, message):
    if message["type"] != "look.again" and random.random() < LOST:
        return
    await _whole(self, channel, message)


async def _group_send(self, group, message):
    for channel in list(self.groups.get(group, ())):
        await self.send(channel, message)


InMemoryChannelLayer.send = _send
InMemoryChannelLayer.group_send = _group_send
