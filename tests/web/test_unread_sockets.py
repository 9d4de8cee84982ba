"""A client that doesn't read is disconnected, without affecting others."""

import base64
import os
import select
import socket
import time
from contextlib import ExitStack, closing

import pytest
from websockets.sync.client import connect

from tests.bench.processes import resident_mb
from tests.web.daphne import run_server

FRAME, FRAMES = 500_000, 100
TIMEOUT_SECONDS = 20
GRACE_SECONDS = 2
# A Daphne as the product starts it, with an application that sends more than anyone may owe.
SERVER = f"""
import asyncio, sys
from daphne.server import Server
from agents.web.asgi import daphne_sockets as sockets

async def application(scope, receive, send):
    if scope["type"] == "http":
        await send({{"type": "http.response.start", "status": 200, "headers": []}})
        for number in range({FRAMES}):
            body = b"%03d" % number + b"x" * {FRAME}
            await send({{"type": "http.response.body", "body": body, "more_body": True}})
        return await send({{"type": "http.response.body"}})
    await send({{"type": "websocket.accept"}})
    for number in range({FRAMES}):
        await send({{"type": "websocket.send", "text": f"{{number:03}}" + "x" * {FRAME}}})
        await asyncio.sleep(0.01)
    while (await receive())["type"] != "websocket.disconnect":
        pass

endpoints = [f"tcp:{{sys.argv[1]}}:interface=127.0.0.1"]
sockets.READ_TIMEOUT_SECONDS = {GRACE_SECONDS}
sockets.install_socket_class()
class Patient(sockets.BackpressureMixin, Server):
    pass

Patient(application, endpoints, signal_handlers=False).run()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    yield from run_server(SERVER, tmp_path_factory.mktemp("outbound") / "log")


def open_unread_socket(server):
    """Open a socket of which nothing is read, not even ahead."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", server.port))
    key = base64.b64encode(os.urandom(16)).decode()
    head = ["GET / HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"]
    head += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "\r\n"]
    reader.sendall("\r\n".join(head).encode())
    return closing(reader)


def open_unread_response(server):
    """Request a streamed response, of which nothing is read yet."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", server.port))
    reader.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
    return closing(reader)


def is_disconnected(reader, seconds=0.0):
    poll = select.poll()
    poll.register(reader, 0)  # only that it is over, not that there is something to read
    return bool(poll.poll(seconds * 1000))


@pytest.mark.thorough
def test_a_client_that_never_reads_is_disconnected_and_costs_little_memory(server):
    before = resident_mb(server)
    with ExitStack() as stack:
        readers = [stack.enter_context(open_unread_socket(server)) for _ in range(20)]
        assert all(is_disconnected(reader, TIMEOUT_SECONDS) for reader in readers)

    whole = len(readers) * FRAMES * FRAME / 1e6
    assert resident_mb(server) - before < whole / 2


def test_a_client_that_reads_very_slowly_is_disconnected(server):
    end = time.monotonic() + TIMEOUT_SECONDS
    with open_unread_socket(server) as reader:
        while not is_disconnected(reader) and time.monotonic() < end:
            reader.recv(100)
            time.sleep(0.1)

        assert is_disconnected(reader)


def test_a_reading_client_gets_everything_while_others_do_not_read(server):
    url = f"ws://127.0.0.1:{server.port}/"
    with (
        open_unread_socket(server) as deaf,
        connect(url, max_size=None, compression=None) as page,
    ):
        frames = [page.recv(TIMEOUT_SECONDS) for _ in range(FRAMES)]

        assert is_disconnected(deaf, TIMEOUT_SECONDS)
    assert [frame[:3] for frame in frames] == [f"{number:03}" for number in range(FRAMES)]
    assert {len(frame) for frame in frames} == {FRAME + 3}


@pytest.mark.thorough
def test_a_streamed_response_waits_for_its_reader(server):
    before = resident_mb(server)
    with open_unread_response(server) as reader:
        time.sleep(GRACE_SECONDS / 2)
        assert resident_mb(server) - before < FRAMES * FRAME / 1e6 / 2
        read = bytearray()
        while piece := reader.recv(1_000_000):
            read += piece

    body = bytes(read).partition(b"\r\n\r\n")[2]
    assert len(body) == FRAMES * (FRAME + 3)
    assert [int(body[at : at + 3]) for at in range(0, len(body), FRAME + 3)] == [*range(FRAMES)]


def test_a_client_that_never_reads_its_responses_is_disconnected(server):
    with ExitStack() as stack:
        readers = [stack.enter_context(open_unread_response(server)) for _ in range(5)]

        assert all(is_disconnected(reader, TIMEOUT_SECONDS) for reader in readers)
