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


@pytest.fixture
def receiver(sender, monkeypatch):
    """A socket between two messages, which records what it reads itself and what not."""
    sender.state, sender.data = LowLatencySocket.STATE_OPEN, b""
    sender.inside_message, sender.current_frame = False, None
    sender.texts, sender.left = [], []
    monkeypatch.setattr(sender, "onMessage", lambda text, binary: sender.texts.append(text))
    monkeypatch.setattr(sender, "_dataReceived", sender.left.append)
    return sender


def sent(payload: bytes, opcode: Opcode = Opcode.TEXT, **options) -> bytes:
    return Frame(opcode, payload, **options).serialize(mask=True)


@pytest.mark.parametrize("size", [1, 3, 125, 126, 127, 65_535])
def test_a_short_text_is_read_directly(receiver, size):
    text = ("ü" * size).encode()[: size - size % 2] + b"x" * (size % 2)
    receiver.dataReceived(sent(text))

    assert receiver.texts == [text]
    assert receiver.left == []


# By name, because masks are random and the ids of tests aren't.
OTHER_DATA = {
    "binary": sent(b"binary", Opcode.BINARY),
    "ping": sent(b"", Opcode.PING),
    "empty": sent(b""),
    "first part": sent(b"first part", fin=False),
    "compressed": b"\xc1" + sent(b"compressed")[1:],
    "not UTF-8": sent(b"\xff\xfe"),
    "too long": sent(b"x" * 65_536),
    "two frames": sent(b"one") + sent(b"two"),
    "half a frame": sent(b"half a frame")[:-1],
    "half a header": sent(b"x" * 200)[:3],
    "without a mask": Frame(Opcode.TEXT, b"without a mask").serialize(mask=False),
    "length in too many bytes": b"\x81\xfe\x00\x04maskword",
    "one byte": b"\x81",
}


@pytest.mark.parametrize("name", OTHER_DATA)
def test_everything_else_is_left_to_autobahn(receiver, name):
    receiver.dataReceived(OTHER_DATA[name])

    assert receiver.texts == []
    assert receiver.left == [OTHER_DATA[name]]


@pytest.mark.parametrize(
    "state",
    [
        {"data": b"\x81"},
        {"inside_message": True},
        {"current_frame": object()},
        {"state": LowLatencySocket.STATE_CLOSING},
    ],
)
def test_a_text_isnt_read_before_what_came_before_it(receiver, state):
    vars(receiver).update(state)
    receiver.dataReceived(sent(b"text"))

    assert receiver.texts == []
    assert len(receiver.left) == 1
