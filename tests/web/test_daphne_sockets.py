"""Frames are sent at once, whole and in order."""

import socket
from collections import deque

import pytest
from twisted.internet.tcp import Connection
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from agents.web.asgi.daphne_sockets import LowLatencySocket

MUCH = b"abcdefgh" * 1_000_000


class Reactor:
    """Records who asks to be notified that more can be sent."""

    def __init__(self):
        self.writers = set()

    def addWriter(self, writer):
        self.writers.add(writer)

    def removeWriter(self, writer):
        self.writers.discard(writer)


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def sender(ends):
    sender = LowLatencySocket()
    sender.transport = Connection(ends[0], None, Reactor())
    sender.transport.connected = True
    sender.send_queue, sender.peer = deque(), "the page"
    sender.state, sender.logOctets = LowLatencySocket.STATE_CLOSED, False
    return sender


def test_a_frame_is_written_to_the_socket_at_once(sender, ends):
    sender.sendData(b"one")
    sender.sendData(b"two")

    assert ends[1].recv(100) == b"onetwo"
    assert sender.transport.reactor.writers == set()


@pytest.mark.parametrize("size", [1, 125, 126, 65_535])
def test_a_short_text_is_a_valid_websocket_frame(sender, ends, size):
    sender.state, sender._perMessageCompress = LowLatencySocket.STATE_OPEN, None
    sender.sendMessage(b"x" * size)

    reader = StreamReader()
    reader.feed_data(ends[1].recv(100_000))
    with pytest.raises(StopIteration) as end:
        next(Frame.parse(reader.read_exact, mask=False))
    assert end.value.value == Frame(Opcode.TEXT, b"x" * size)


def test_unsent_data_follows_in_order(sender, ends):
    sender.sendData(MUCH)
    sender.sendData(b"end")
    assert sender.transport.reactor.writers == {sender.transport}

    got = b""
    while len(got) < len(MUCH) + 3:
        got += ends[1].recv(1_000_000)
        sender.transport.doWrite()

    assert got == MUCH + b"end"
    assert sender.transport.reactor.writers == set()


def test_data_for_a_closed_socket_is_left_to_twisted(sender, ends):
    ends[1].close()
    sender.sendData(b"one")

    assert sender.transport.reactor.writers == {sender.transport}
