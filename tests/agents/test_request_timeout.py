"""An incomplete request doesn't hold its connection for long."""

import socket
import time
from contextlib import closing, suppress

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from agents.runs import close_codes
from tests.bench.processes import child, free_port, wait_for_port

LIMIT = 1.0
TIMEOUT_SECONDS = 10
# A Daphne as the product starts it, with shorter waits, and an application that takes its time.
SERVER = f"""
import asyncio, sys
from daphne.server import Server
from agents.runs import close_codes
from agents.web import daphne_sockets as sockets, request_timeout

async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await send({{"type": "websocket.accept"}})
        while (frame := await receive())["type"] != "websocket.disconnect":
            name = frame.get("text", "")
            if name in vars(close_codes):
                await send({{"type": "websocket.close", "code": getattr(close_codes, name)}})
            elif frame["type"] == "websocket.receive":
                text = scope["root_path"] + frame["text"]
                await send({{"type": "websocket.send", "text": text}})
        return
    size, more, root = 0, True, scope["root_path"].encode()
    while more:
        part = await receive()
        size, more = size + len(part["body"]), part["more_body"]
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    if scope["path"] == "/slow":
        for number in range(5):
            await asyncio.sleep({LIMIT} / 2)
            await send({{"type": "http.response.body", "body": b"piece ", "more_body": True}})
    await send({{"type": "http.response.body", "body": b"%d bytes" % size + root}})

request_timeout.HEADERS_SECONDS = request_timeout.IDLE_SECONDS = {LIMIT}
request_timeout.MIN_BODY_BYTES = 100
request_timeout.max_body_bytes = lambda: 1_000_000
sockets.install_socket_class()
request_timeout.install_request_timeouts()
Server(application, [f"tcp:{{sys.argv[1]}}:interface=127.0.0.1"], signal_handlers=False).run()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    port, log = free_port(), tmp_path_factory.mktemp("slow") / "log"
    environment = {"DJANGO_SETTINGS_MODULE": "project.settings", "PYTHONPATH": "."}
    code = f"import django; django.setup()\n{SERVER}"
    with child("-c", code, port, env=environment, log=log) as process:
        wait_for_port(port, process, log)
        process.port = port
        yield process
    assert "Traceback" not in log.read_text()


def open_connection(server):
    return closing(socket.create_connection(("127.0.0.1", server.port), TIMEOUT_SECONDS))


def answer(line):
    """Return everything received until the connection is closed; raise after a timeout."""
    parts = []
    while part := line.recv(65536):
        parts.append(part)
    return b"".join(parts)


def seconds_until_closed(line, head, drop, pause=LIMIT / 4):
    """Return the seconds until the server closed a slow request."""
    began = time.monotonic()
    line.sendall(head)
    line.settimeout(pause)
    while time.monotonic() - began < TIMEOUT_SECONDS:
        try:
            line.sendall(drop)
            if line.recv(100) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


HALVES = [
    b"",
    b"GET /",
    b"GET / HTTP/1.1\r\nHost: x\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
]


@pytest.mark.parametrize("half", HALVES)
def test_an_incomplete_request_is_closed(server, half):
    began = time.monotonic()
    with open_connection(server) as line:
        line.sendall(half)
        said = answer(line)

    assert LIMIT * 0.9 < time.monotonic() - began < LIMIT * 4
    assert said.startswith(b"HTTP/1.1 408 ") is bool(half)


LARGE = [
    b"Content-Length: 5000000\r\n\r\n" + b"x" * 100_000,
    b"Transfer-Encoding: chunked\r\n\r\n" + b"30d40\r\n" + b"x" * 200_000 + b"\r\n",
]


@pytest.mark.parametrize("rest", LARGE, ids=["declared", "chunked"])
def test_too_large_a_body_is_refused_before_it_fills_the_disk(server, rest):
    with open_connection(server) as line:
        line.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n" + rest)
        with suppress(OSError):
            for _piece in range(20 if b"chunked" in rest else 0):
                line.sendall(rest.partition(b"\r\n\r\n")[2])
        assert line.recv(12) == b"HTTP/1.1 413"


def test_slow_headers_time_out(server):
    with open_connection(server) as line:
        took = seconds_until_closed(line, b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n")

    assert took < LIMIT * 4


@pytest.mark.thorough
def test_a_slow_body_times_out(server):
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    with open_connection(server) as line:
        took = seconds_until_closed(line, head, b"x")

    assert took < LIMIT * 4


@pytest.mark.thorough
def test_an_upload_over_a_slow_connection_arrives(server):
    size = 1_200
    head = f"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n"
    with open_connection(server) as line:
        line.sendall(head.encode())
        for _bit in range(12):
            time.sleep(LIMIT / 4)
            line.sendall(b"x" * (size // 12))

        assert b"1200 bytes" in answer(line)


@pytest.mark.thorough
def test_a_streamed_response_is_sent_to_its_end(server):
    with open_connection(server) as line:
        line.sendall(b"GET /slow HTTP/1.0\r\nHost: x\r\n\r\n")

        assert answer(line).count(b"piece ") == 5


@pytest.mark.thorough
def test_a_connection_is_used_again_after_a_pause(server):
    with open_connection(server) as line:
        for _time in range(2):
            line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"0 bytes" in line.recv(65536)
            time.sleep(LIMIT * 1.5)
        line.sendall(b"GET / HT")
        assert answer(line).startswith(b"HTTP/1.1 408 ")


def test_pipelined_requests_are_answered_and_an_incomplete_one_times_out(server):
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    with open_connection(server) as line:
        line.sendall(whole + whole + b"GET /")
        said = answer(line)

    assert said.count(b"0 bytes") == 2
    assert b" 408 " in said


@pytest.mark.thorough
def test_a_quiet_socket_stays_open(server):
    with connect(f"ws://127.0.0.1:{server.port}/", compression=None) as page:
        time.sleep(LIMIT * 2)
        page.send("still here")

        assert page.recv(TIMEOUT_SECONDS) == "still here"


NAMES = [name for name in vars(close_codes) if name.isupper()]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_gets_the_code_its_socket_was_closed_with(server, name):
    with connect(f"ws://127.0.0.1:{server.port}/", compression=None) as page:
        page.send(name)
        with pytest.raises(ConnectionClosed) as closed:
            page.recv(TIMEOUT_SECONDS)

    assert closed.value.rcvd.code == getattr(close_codes, name)


def test_a_client_cannot_set_the_root_path(server):
    with open_connection(server) as line:
        line.sendall(
            b"GET / HTTP/1.1\r\nHost: a\r\ndaphne-ROOT-path: /evil\r\nConnection: close\r\n\r\n"
        )
        answer = b""
        while piece := line.recv(4096):
            answer += piece
    assert b"0 bytes" in answer
    assert b"evil" not in answer

    about = {"Daphne-Root-Path": "/evil"}
    with connect(f"ws://127.0.0.1:{server.port}/", additional_headers=about) as line:
        line.send("hello")
        assert line.recv(TIMEOUT_SECONDS) == "hello"
