"""Memory and lateness of the server while it receives large request bodies and sign-ins."""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from tests.bench.product import Product, product
from tests.bench.rounds import Size

ABOUT = """\
Bodies: what the server answers, how much more memory it has at its peak than when idle, and how
much later than usual `/healthz` answers meanwhile. Sign-ins are those of unknown users."""
MEGABYTE = 1_000_000
LINE = "bench-boundary"
CSRF = "f" * 32
SETTLES = 0.5
QUIET_SECONDS = 5.0
PROBE_SECONDS = 0.02
SAMPLE_SECONDS = 0.005
TIMEOUT_SECONDS = 300
SIGN_INS = 12


@dataclass(slots=True)
class Load:
    """What a server went through meanwhile."""

    idle_mb: float = 0.0  # at most: background work comes and goes
    peak_mb: float = 0.0
    usual_ms: float = 0.0
    slowest_ms: float = 0.0

    @property
    def figures(self) -> dict[str, float]:
        grown = max(0.0, self.peak_mb - self.idle_mb)
        late = max(0.0, self.slowest_ms - self.usual_ms)
        return {"MB more": round(grown, 1), "ms late": round(late, 1)}


def measure(size: Size) -> list[dict]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-"))
        server = stack.enter_context(product(Path(folder), 1, 1))
        cookie = server.people[0]["cookie"]
        rows = [
            ("2 MB of newlines to /login/", "/login/", 2, b"\n", ""),
            ("40 MB to /login/", "/login/", 40, b"x", ""),
            ("150 MB to /login/", "/login/", 150, b"x", ""),
            ("47 MB file in a chat", "/chat/files/", 47, b"words in a line\n", cookie),
            ("490 MB chat import", "/chats/import/", 490, b"words in a line\n", cookie),
        ]
        warm_up(server.port, cookie)
        sign_ins(server.port, 1)
        found = [_measure_body(server, *row) for row in rows]
        with watch(server.process, server.port) as load:
            began = time.monotonic()
            statuses = sign_ins(server.port, SIGN_INS)
            took = time.monotonic() - began
        about = {"what": f"{SIGN_INS} sign-ins at once", "status": max(statuses)}
        return [*found, about | {"s": round(took, 2)} | load.figures]


def warm_up(port: int, cookie: str) -> None:
    """Let the server load what its first upload and its first refusal need."""
    post(port, "/chat/files/", 10_000, b"warm\n", cookie)
    post(port, "/login/", 100_000, b"warm\n")


def _measure_body(
    server: Product, what: str, path: str, megabytes: int, filler: bytes, cookie: str
) -> dict:
    with watch(server.process, server.port) as load:
        began = time.monotonic()
        status = post(server.port, path, megabytes * MEGABYTE, filler, cookie)
        took = time.monotonic() - began
        time.sleep(SETTLES)
    return {"what": what, "status": status, "s": round(took, 2)} | load.figures


def post(port: int, path: str, size: int, filler: bytes, cookie: str = "") -> int:
    """Send a form with one file of this size; return the status, or 0 if it was cut off."""
    name = "files" if "import" in path else "file"
    disposition = f'Content-Disposition: form-data; name="{name}"; filename="a.txt"'
    start = f"--{LINE}\r\n{disposition}\r\nContent-Type: text/plain\r\n\r\n".encode()
    end = f"\r\n--{LINE}--\r\n".encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Origin: http://127.0.0.1:{port}\r\nConnection: close\r\n"
        f"Cookie: csrftoken={CSRF}; {cookie}\r\nX-CSRFToken: {CSRF}\r\n"
        f"Content-Type: multipart/form-data; boundary={LINE}\r\n"
        f"Content-Length: {len(start) + size + len(end)}\r\n\r\n"
    )
    chunk = filler * (262_144 // len(filler))
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as line:
        with suppress(ConnectionError):
            line.sendall(head.encode() + start)
            for sent in range(0, size, len(chunk)):
                line.sendall(chunk[: size - sent])
            line.sendall(end)
        return _status(line)


def sign_ins(port: int, count: int) -> list[int]:
    """Sign in this often at once, with a wrong password; return the statuses."""
    statuses: list[int] = []

    def sign_in(number: int) -> None:
        name = f"nobody-{number}"
        body = f"csrfmiddlewaretoken={CSRF}&username={name}&password=wrong".encode()
        head = (
            f"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Origin: http://127.0.0.1:{port}\r\nConnection: close\r\n"
            f"Cookie: csrftoken={CSRF}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )

        with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as line:
            line.sendall(head.encode() + body)
            statuses.append(_status(line))

    threads = [threading.Thread(target=sign_in, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def _status(line: socket.socket) -> int:
    """Read a whole response, and return its status."""
    said = b""
    with suppress(ConnectionError):
        while piece := line.recv(65_536):
            said += piece
    return int(said.split(b" ", 2)[1]) if said.startswith(b"HTTP/1.1 ") else 0


@contextmanager
def watch(process: psutil.Process, port: int) -> Iterator[Load]:
    """Sample the memory of a server, and how fast it answers: first idle, then under load."""
    quiet: tuple[list[float], list[float]] = ([], [])
    busy: tuple[list[float], list[float]] = ([], [])
    samples = quiet
    is_over = threading.Event()

    def sample() -> None:
        with suppress(psutil.NoSuchProcess):
            while not is_over.wait(SAMPLE_SECONDS):
                samples[0].append(process.memory_info().rss / 1e6)

    def probe() -> None:
        with suppress(OSError):
            while not is_over.wait(PROBE_SECONDS):
                samples[1].append(_probe_ms(port))

    threads = [threading.Thread(target=sample), threading.Thread(target=probe)]
    for thread in threads:
        thread.start()
    load = Load()
    try:
        time.sleep(QUIET_SECONDS)
        samples = busy
        yield load
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
        load.idle_mb = max(quiet[0])
        load.peak_mb = max(busy[0], default=0.0)
        load.usual_ms = median(quiet[1])
        load.slowest_ms = max(busy[1], default=0.0)


def _probe_ms(port: int) -> float:
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while line.recv(65_536):
            pass
    return (time.monotonic() - began) * 1000
