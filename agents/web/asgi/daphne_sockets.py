"""Daphne's connections, optimized for many small frames and for slow readers."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

Message = Mapping[str, Any]

logger = logging.getLogger(__name__)

MAX_UNSENT_BYTES = 8_000_000
LOW_WATER_BYTES = 1_000_000  # of a streamed response that waits for its reader
# First byte of a text frame, and the maximum lengths in one and two bytes.
TEXT_FRAME_BYTE = 0x81
MIN_EXTENDED_LENGTH = 126
MAX_EXTENDED_LENGTH = 0xFFFF
READ_TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.05


if TYPE_CHECKING:
    from daphne.server import Server
else:
    # Not a server itself: importing Daphne's installs a reactor, which is the caller's choice.
    Server = object


class BackpressureMixin(Server):
    """A mixin for Daphne's server: a streamed response waits for its reader."""

    async def handle_reply(self, protocol: Any, message: Message) -> None:
        is_text = message["type"] == "websocket.send" and message.get("text")
        if is_text and protocol.state == protocol.STATE_OPEN:
            # Sent directly: Daphne's checks always pass for an open socket.
            protocol.sendMessage(message["text"].encode())
            return
        if not message.get("more_body"):
            await super().handle_reply(protocol, message)
            return
        # Directly, too: it ignores a connection that is closed.
        protocol.handle_reply(message)
        if protocol.channel and _unsent_bytes(protocol.channel.transport) > LOW_WATER_BYTES:
            await _wait_for_reader(protocol)


async def _wait_for_reader(request: Any) -> None:
    """Wait until most data was read; disconnect a reader that reads nothing for long."""
    fewest_unsent = float("inf")
    read_at = time.monotonic()
    while (
        request.channel
        and (unsent := _unsent_bytes(request.channel.transport)) > LOW_WATER_BYTES
    ):
        if unsent < fewest_unsent:
            fewest_unsent = unsent
            read_at = time.monotonic()
        elif time.monotonic() - read_at > READ_TIMEOUT_SECONDS:
            logger.info("%r doesn't read its data. Connection closed.", request)
            request.channel.transport.abortConnection()
            return
        await asyncio.sleep(POLL_SECONDS)


class LowLatencySocket(WebSocketProtocol):
    """Writes a frame to the socket at once, not in the next iteration of the event loop.

    Only what the system doesn't accept is left to Twisted, whose registration of writers would
    cost more per frame than sending it. If too much accumulates, the page isn't reading: it is
    disconnected, reconnects by itself and gets the current state.
    """

    transport: Any  # Twisted's TCP connection: its interface lacks these attributes

    def sendMessage(
        self, payload: bytes, isBinary: bool = False, *arguments: Any, **options: Any
    ) -> None:
        """Send short text directly, because Autobahn has a lot of overhead per frame."""
        is_usual = self.state == self.STATE_OPEN and self._perMessageCompress is None
        size = len(payload)
        if isBinary or arguments or options or size > MAX_EXTENDED_LENGTH or not is_usual:
            super().sendMessage(payload, isBinary, *arguments, **options)
        elif size < MIN_EXTENDED_LENGTH:
            self.sendData(bytes((TEXT_FRAME_BYTE, size)) + payload)
        else:
            self.sendData(
                bytes((TEXT_FRAME_BYTE, MIN_EXTENDED_LENGTH)) + size.to_bytes(2) + payload
            )

    def sendData(self, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:
        unsent = _unsent_bytes(self.transport)
        if unsent > MAX_UNSENT_BYTES:
            # Abort without a close frame, which would wait behind the unread data.
            logger.info("%r doesn't read its data. Connection closed.", self)
            self.dropConnection(abort=True)
            return
        if not (sync or chopsize or self.send_queue):
            data = write_at_once(self.transport, data)
        if data:
            super().sendData(data, sync, chopsize)


def write_at_once(transport: Any, data: bytes) -> bytes:
    """Write what the system accepts now, if nothing is before it; return the rest.

    Twisted would write it in the next iteration of the event loop, and register a writer for
    that, which costs more than sending it.
    """
    # Data may have to be encrypted first, or can't be delivered any more.
    if (
        transport.TLS
        or transport.disconnecting
        or not transport.connected
        or _unsent_bytes(transport)
    ):
        return data
    sent_count = transport.writeSomeData(data)
    return data[sent_count:] if isinstance(sent_count, int) else data


def _unsent_bytes(transport: Any) -> int:
    """Return the bytes not yet accepted by the system, in both of Twisted's buffers."""
    return int(len(transport.dataBuffer) - transport.offset + transport._tempDataLen)


def install_socket_class() -> None:
    WebSocketFactory.protocol = LowLatencySocket
