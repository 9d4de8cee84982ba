"""An incomplete request doesn't hold its connection for long."""

import os
import socket
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from agents.runs import close_codes
from tests.web.daphne import run_server

LIMIT = 1.0
TIMEOUT_SECONDS = 10
# A Daphne as the product starts it, with shorter waits, and an application that takes its time.
SERVER = f"""
import asyncio, sys
from daphne.server import Server
from agents.runs import close_codes
from agents.web.asgi import body_limits, daphne_sockets as sockets, request_body
from agents.web.asgi import request_timeout

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
    about = scope["extensions"]
    if file := about.get(request_body.BODY_FILE):
        size += len(file.read())
    status = 413 if about.get(request_body.REFUSAL) else 200
    await send({{"type": "http.response.start", "status": status, "headers": []}})
    if scope["path"] == "/slow":
        for number in range(5):
            await asyncio.sleep({LIMIT} / 2)
            await send({{"type": "http.response.body", "body": b"piece ", "more_body": True}})
    await send({{"type": "http.response.body", "body": b"%d bytes" % size + root}})

request_timeout.HEADERS_SECONDS = request_timeout.IDLE_SECONDS = {LIMIT}
request_timeout.MIN_BODY_BYTES = 100
body_limits.FORM_BYTES = 100_000
body_limits.find_sender = lambda path, cookies, authorization: body_limits.Sender(
    user=1, max_bytes=1_000_000 if "good" in cookies else 70_000
)
sockets.install_socket_class()
request_timeout.install_request_timeouts()
class Ours(request_body.BodyFileMixin, Server):
    pass

endpoints = [f"tcp:{{sys.argv[1]}}:interface=127.0.0.1"]
Ours(application, endpoints, signal_handlers=False).run()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    yield from run_server(SERVER, tmp_path_factory.mktemp("slow") / "log")


def open_connection(server):
    return closing(socket.create_connection(("127.0.0.1", server.port), TIMEOUT_SECONDS))


def answer(line):
    """Return everything received until the connection is closed; raise after a timeout."""
    parts = []
    while part := line.recv(65536):
        parts.append(part)
    return b"".join(parts)


def is_closed(line, head, drop, pause=LIMIT / 4):
    """Send a request drop by drop, and return whether the server closed it."""
    end = time.monotonic() + TIMEOUT_SECONDS
    line.sendall(head)
    line.settimeout(pause)
    while time.monotonic() < end:
        try:
            line.sendall(drop)
            if line.recv(100) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


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

    assert time.monotonic() - began > LIMIT * 0.9
    assert said.startswith(b"HTTP/1.1 408 ") is bool(half)


def post(line, *headers, chunks=(), is_chunked=False):
    """Send a body as far as the server takes it; return its answer."""
    size = [b"Transfer-Encoding: chunked"] if is_chunked else []
    line.sendall(b"\r\n".join([b"POST /x HTTP/1.1", b"Host: x", *size, *headers, b"", b""]))
    with suppress(OSError):
        for chunk in chunks:
            line.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk) if is_chunked else chunk)
        line.sendall(b"0\r\n\r\n" if is_chunked else b"")
    return answer(line)


CLOSE, GOOD, BAD = b"Connection: close", b"Cookie: sessionid=good", b"Cookie: sessionid=bad"
CHUNK = b"\n" * 100_000
FORM = b"Content-Type: application/x-www-form-urlencoded"


@pytest.mark.parametrize("is_chunked", [False, True], ids=["declared", "chunked"])
@pytest.mark.parametrize("cookie", [b"X-No: cookie", BAD], ids=["none", "invalid"])
def test_a_large_body_without_a_session_is_refused_while_it_arrives(server, cookie, is_chunked):
    length = b"X-Len: 0" if is_chunked else b"Content-Length: 20000000"
    with open_connection(server) as line:
        said = post(line, length, cookie, FORM, chunks=[CHUNK] * 200, is_chunked=is_chunked)

    assert said.startswith(b"HTTP/1.1 413")
    assert b"Connection: close" in said
    assert b"\r\n0 bytes" in said


@pytest.mark.parametrize("is_chunked", [False, True], ids=["declared", "chunked"])
def test_a_large_body_of_a_session_reaches_the_application_as_a_file(server, is_chunked):
    length = b"X-Len: 0" if is_chunked else b"Content-Length: 900000"
    with open_connection(server) as line:
        said = post(line, length, CLOSE, GOOD, FORM, chunks=[CHUNK] * 9, is_chunked=is_chunked)

    assert said.startswith(b"HTTP/1.1 200")
    assert b"\r\n900000 bytes" in said


@pytest.mark.parametrize("is_chunked", [False, True], ids=["declared", "chunked"])
def test_a_session_has_a_limit_too(server, is_chunked):
    length = b"X-Len: 0" if is_chunked else b"Content-Length: 3000000"
    with open_connection(server) as line:
        said = post(line, length, GOOD, chunks=[CHUNK] * 30, is_chunked=is_chunked)

    assert said.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(("cookie", "status"), [(GOOD, b"100"), (BAD, b"413")])
def test_only_a_sender_who_may_send_it_is_asked_for_the_body(server, cookie, status):
    with open_connection(server) as line:
        head = (b"POST / HTTP/1.1", b"Host: x", b"Content-Length: 900000", cookie)
        line.sendall(b"\r\n".join([*head, b"Expect: 100-continue", b"", b""]))

        assert line.recv(12) == b"HTTP/1.1 " + status


@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "is answered"])
def test_a_third_large_body_of_a_user_waits_until_another_one_ends(server, leaves):
    size = b"Content-Length: 900000"
    head = b"\r\n".join([b"POST / HTTP/1.1", b"Host: x", size, GOOD, b""])
    with open_connection(server) as first, open_connection(server) as second:
        for line in (first, second):
            line.sendall(head + b"Expect: 100-continue\r\n\r\n")
            assert line.recv(12) == b"HTTP/1.1 100"
        with open_connection(server) as third:
            third.sendall(head + b"Expect: 100-continue\r\n\r\n")
            third.settimeout(LIMIT / 2)
            with pytest.raises(TimeoutError):
                third.recv(12)

            third.settimeout(TIMEOUT_SECONDS)
            if leaves:
                first.close()
            else:
                first.sendall(CHUNK * 9)

            assert third.recv(12) == b"HTTP/1.1 100"


def test_a_body_whose_client_leaves_is_deleted(server):
    before = server.num_fds()
    for _ in range(3):
        with open_connection(server) as line:
            head = (b"POST / HTTP/1.1", b"Host: x", b"Content-Length: 900000", GOOD)
            line.sendall(b"\r\n".join([*head, b"", b""]) + CHUNK * 5)
            wait_until(lambda: any(is_body(file) for file in open_files(server)))

    wait_until(lambda: not any(is_body(file) for file in open_files(server)))
    wait_until(lambda: server.num_fds() <= before)


def open_files(server):
    folder = Path(f"/proc/{server.pid}/fd")
    with suppress(FileNotFoundError):
        return [os.readlink(file) for file in folder.iterdir()]
    return []


def is_body(file):
    return file.endswith("(deleted)")


def wait_until(is_so):
    end = time.monotonic() + TIMEOUT_SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_slow_headers_time_out(server):
    with open_connection(server) as line:
        assert is_closed(line, b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n")


@pytest.mark.thorough
def test_a_slow_body_times_out(server):
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    with open_connection(server) as line:
        assert is_closed(line, head, b"x")


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
