"""What the chat adds to the model's stream: latency per token, and server load."""

import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import psutil

from tests.bench import relay
from tests.bench.engine import fake_llm
from tests.bench.fake_llm import Plan
from tests.bench.processes import (
    DiedEarly,
    busy_seconds,
    child,
    cpu,
    free_port,
    resident_mb,
    wait_for_page,
    wait_for_port,
)
from tests.bench.rounds import Reading, Size, rows

PLAN = Plan(tokens=200, rate=50, paragraph=40)
RELAY, SOCKET_RELAY, PRODUCT = "bare relay", "… on a socket", "Ashiato"
WARM_UP = 3
SETTLED = 0.5
ENDED = 'class="run" data-status="completed"'
ABOUT = f"""\
Chat: so many people at once, each with an answer of {PLAN.tokens} tokens, {PLAN.rate} a second.
The bare relay passes the tokens of the same model on as events (Starlette on uvicorn) and keeps
nothing; × is the ratio to it. The one on a socket is aiohttp's. CPU is the server's for 1,000
tokens; the delay of a token is from the model to the page. Late is how far the model was behind
its own clock, others the cores that the rest of the machine used: where they are large, doubt
the delays."""


@dataclass
class Server:
    """A chat server with unused chats."""

    process: psutil.Popen
    port: int
    end: str
    people: list[dict] = field(default_factory=list)
    plan: Plan = PLAN

    def pages(self, count: int) -> list[dict]:
        """Return a new chat for each of this many users."""
        return [self._page(n) for n in range(count)]

    def _page(self, number: int) -> dict:
        person, where = self.people[number], f"127.0.0.1:{self.port}"
        url = f"ws://{where}/ws/chat/{person['chats'].pop()}/"
        return {"url": url, "origin": f"http://{where}", "cookie": person["cookie"]}


class Relay(Server):
    """A relay without authentication."""

    def _page(self, number: int) -> dict:
        origin = f"http://127.0.0.1:{self.port}"
        return {"url": f"{origin}/{number}", "origin": origin, "cookie": "", "kind": "events"}


class SocketRelay(Server):
    def _page(self, number: int) -> dict:
        where = f"127.0.0.1:{self.port}"
        return {"url": f"ws://{where}/ws/{number}/", "origin": f"http://{where}", "cookie": ""}


class Watch:
    """Measures what a process and the rest of the machine use."""

    def __init__(self, process: psutil.Popen) -> None:
        self.process = process
        self.began, self.busy, self.cpu = time.monotonic(), busy_seconds(), cpu(process)

    def spent(self, by_us: float) -> tuple[float, float]:
        """Return the process's CPU seconds, and the cores used by others."""
        spent = cpu(self.process) - self.cpu
        others = busy_seconds() - self.busy - spent - by_us
        return spent, max(0.0, others / (time.monotonic() - self.began))


def measure(size: Size) -> list[dict]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-")))
        llm = stack.enter_context(fake_llm())
        servers = {
            RELAY: stack.enter_context(relay_server(llm)),
            SOCKET_RELAY: stack.enter_context(socket_relay_server(llm)),
            PRODUCT: stack.enter_context(product_server(llm, folder, size)),
        }
        for server in servers.values():
            measure_load(server, WARM_UP, llm)
        readings = [
            Reading(number, name, level, measure_load(server, level, llm))
            for number in range(size.rounds)
            for level in size.chats
            for name, server in servers.items()
        ]
    return rows(readings, RELAY, ["cpu ms / 1000"])


@contextmanager
def relay_server(llm: int) -> Iterator[Server]:
    with _relay("tests.bench.relay", llm) as (process, port):
        yield Relay(process, port, relay.END)


@contextmanager
def socket_relay_server(llm: int) -> Iterator[Server]:
    with _relay("tests.bench.socket_relay", llm) as (process, port):
        yield SocketRelay(process, port, relay.END)


@contextmanager
def _relay(module: str, llm: int) -> Iterator[tuple[psutil.Popen, int]]:
    port = free_port()
    env = {"RELAY_MODEL": PLAN.model, "RELAY_URL": f"http://127.0.0.1:{llm}/v1"}
    with child("-m", module, port, env=env) as process:
        wait_for_port(port, process)
        yield process, port


@contextmanager
def product_server(llm: int, folder: Path, size: Size, plan: Plan = PLAN) -> Iterator[Server]:
    port, log = free_port(), folder / "serve.log"
    env = {
        "ASHIATO_DATA": str(folder / "data"),
        "ASHIATO_MODEL": f"openai/{plan.model}",
        "ASHIATO_MODEL_URL": f"http://127.0.0.1:{llm}/v1",
        "ASHIATO_MODEL_KEY": "none",
        "PORT": str(port),
    }
    with child("manage.py", "serve", env=env, log=log) as process:
        wait_for_page(f"http://127.0.0.1:{port}/login/", process, log)
        yield Server(process, port, ENDED, people(size, env), plan)


def people(size: Size, env: dict[str, str]) -> list[dict]:
    chats = size.rounds * len(size.chats) + 1
    arguments = ("-m", "tests.bench.accounts", max(*size.chats, WARM_UP), chats)
    with child(*arguments, env=env, stdout=-1, stderr=None) as process:
        return orjson.loads(process.stdout.read())


def measure_load(server: Server, chats: int, llm: int) -> dict[str, float]:
    """Measure one level of load on a running server."""
    order = {"pages": server.pages(chats), "tokens": server.plan.tokens, "end": server.end}
    pipes = {"stdin": -1, "stdout": -1, "stderr": None}
    with child("-m", "tests.bench.chat_load", **pipes) as people:
        _send_order(people, order)
        time.sleep(SETTLED)
        _late(llm)
        watched = Watch(server.process)
        seen = _send_order(people, {})
        spent, others = watched.spent(seen.pop("client cpu s"))
        late = _late(llm)
    return {
        "cpu ms / 1000": spent / max(1, seen.pop("tokens")) * 1e6,
        **seen,
        "rss MB": resident_mb(server.process),
        "late p99 ms": late,
        "others": others,
    }


def _send_order(people: psutil.Popen, order: dict) -> dict:
    people.stdin.write(orjson.dumps(order) + b"\n")
    people.stdin.flush()
    if not (line := people.stdout.readline()):
        raise DiedEarly(str(people.args))
    return orjson.loads(line)


def _late(llm: int) -> float:
    """Return how late the model was since the last call, in milliseconds."""
    with urllib.request.urlopen(f"http://127.0.0.1:{llm}/stats", timeout=10) as page:
        return orjson.loads(page.read())["late_p99_ms"]
