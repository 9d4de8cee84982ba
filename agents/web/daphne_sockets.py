"""Daphne's connections, made for many small frames and for whoever does not read them."""

import asyncio
import logging
import time

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

logger = logging.getLogger(__name__)

MAX_UNSENT_BYTES = 8_000_000
LOW_WATER_BYTES = 1_000_000  # of an answer that can wait for its reader
# The first byte of a frame that is a whole text; how long one may be whose length is a byte,
# and is two.
TEXT_FRAME_BYTE, MIN_EXTENDED_LENGTH, MAX_EXTENDED_LENGTH = 0x81, 126, 0xFFFF
READ_TIMEOUT_SECONDS, POLL_SECONDS = 60.0, 0.05  # seconds


class BackpressureMixin:
    """A part of Daphne's server: an answer in pieces waits for whoever reads it."""

    # No server by itself: whoever imports Daphne's chooses the reactor, which is theirs to do.

    async def handle_reply(self, protocol, message) -> None:
        if _is_text_frame(message) and protocol.state == protocol.STATE_OPEN:
            # Straight on: what Daphne would ask first is true of a socket that is open.
            protocol.sendMessage(message["text"].encode())
            return
        await super().handle_reply(protocol, message)
        if message.get("more_body"):
            await _wait_for_reader(protocol)


def _is_text_frame(message) -> bool:
    return message["type"] == "websocket.send" and bool(message.get("text"))


async def _wait_for_reader(request) -> None:
    """Come back when most of it was taken; whoever takes nothing for long is let go."""
    least, since = float("inf"), time.monotonic()
    while (
        request.channel and (left := _unsent_bytes(request.channel.transport)) > LOW_WATER_BYTES
    ):
        if left < least:
            least, since = left, time.monotonic()
        elif time.monotonic() - since > READ_TIMEOUT_SECONDS:
            logger.info("%r doesn't read its data. Connection closed.", request)
            request.channel.transport.abortConnection()
            return
        await asyncio.sleep(POLL_SECONDS)


class LowLatencySocket(WebSocketProtocol):
    """Hands a frame to the system at once, not in the next round of the event loop.

    Only what the system does not take yet is left to Twisted, which asks to be told when it
    will, and to be told no more: for every frame that would cost more than to send it. Where
    too much is left there, nobody reads: a page that is let go connects again by itself, and
    is shown everything as it is then.
    """

    def sendMessage(self, payload, isBinary=False, *more, **options) -> None:
        """What is short and text in one go: Autobahn has many questions about each frame."""
        is_usual = self.state == self.STATE_OPEN and self._perMessageCompress is None
        size = len(payload)
        if isBinary or more or options or size > MAX_EXTENDED_LENGTH or not is_usual:
            super().sendMessage(payload, isBinary, *more, **options)
        elif size < MIN_EXTENDED_LENGTH:
            self.sendData(bytes((TEXT_FRAME_BYTE, size)) + payload)
        else:
            self.sendData(
                bytes((TEXT_FRAME_BYTE, MIN_EXTENDED_LENGTH)) + size.to_bytes(2) + payload
            )

    def sendData(self, data, sync=False, chopsize=None) -> None:
        unsent = _unsent_bytes(self.transport)
        if unsent > MAX_UNSENT_BYTES:
            # At once and without a word: it would wait behind all that is not read.
            logger.info("%r doesn't read its data. Connection closed.", self)
            self.dropConnection(abort=True)
            return
        if not (sync or chopsize or self.send_queue or unsent or self._needs_buffering()):
            sent = self.transport.writeSomeData(data)
            data = data[sent:] if isinstance(sent, int) else data
        if data:
            super().sendData(data, sync, chopsize)

    def _needs_buffering(self) -> bool:
        """Whether what is sent is encrypted on its way, or will never arrive."""
        wire = self.transport
        return bool(wire.TLS or wire.disconnecting or not wire.connected)


def _unsent_bytes(wire) -> int:
    """Bytes that the system has not taken yet, in both of Twisted's buffers."""
    return len(wire.dataBuffer) - wire.offset + wire._tempDataLen


def install_socket_class() -> None:
    WebSocketFactory.protocol = LowLatencySocket
