"""Sockets that are read too slowly are let go before what they were sent fills the memory.

Daphne hands every frame to the transport and never asks what became of it. A page that is let
go connects again by itself, and is shown everything as it is then.
"""

import logging
from typing import Any

logger = logging.getLogger(__name__)

MOST_UNSENT = 8_000_000


class Budgeted:
    """For a Daphne server."""

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        if message["type"] == "websocket.send" and _unsent(protocol.transport) > MOST_UNSENT:
            # At once and without a word: it would wait behind all that is not read.
            logger.info("%r does not read what it is sent; it is let go.", protocol)
            protocol.dropConnection(abort=True)
            return
        await super().handle_reply(protocol, message)


def _unsent(transport: Any) -> int:
    """Bytes that the system has not taken yet, in both of Twisted's buffers."""
    return len(transport.dataBuffer) - transport.offset + transport._tempDataLen
