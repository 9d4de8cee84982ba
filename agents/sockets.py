"""Daphne's sockets, made for many small frames."""

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol


class PromptSocket(WebSocketProtocol):
    """Hands a frame to the system at once, not in the next round of the event loop.

    Only what the system does not take yet is left to Twisted, which asks to be told when it
    will, and to be told no more: for every frame that would cost more than to send it.
    """

    def sendData(self, data, sync=False, chopsize=None) -> None:
        if not (sync or chopsize or self.send_queue or self._is_held_up()):
            sent = self.transport.writeSomeData(data)
            data = data[sent:] if isinstance(sent, int) else data
        if data:
            super().sendData(data, sync, chopsize)

    def _is_held_up(self) -> bool:
        """Whether something waits already, is encrypted on its way, or will never arrive."""
        wire = self.transport
        waits = wire.dataBuffer or wire._tempDataBuffer
        return bool(waits or wire.TLS or wire.disconnecting or not wire.connected)


def use_prompt_sockets() -> None:
    WebSocketFactory.protocol = PromptSocket
