"""Our own server in its own folder, with users and chats."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil

from tests.bench.processes import DiedEarly, child, free_port, wait_for_page


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    process: psutil.Popen
    port: int
    people: list[dict]
    env: dict[str, str]

    @property
    def origin(self) -> str:
        return f"127.0.0.1:{self.port}"

    def tabs(self) -> Iterator[dict]:
        """Yield a page for each chat of each user."""
        page = f"http://{self.origin}"
        for person in self.people:
            for chat in person["chats"]:
                url = f"ws://{self.origin}/ws/chat/{chat}/"
                yield {"url": url, "origin": page, "cookie": person["cookie"]}

    def stalls(self) -> dict[str, float]:
        """Return how often its event loop was blocked, as reported by itself."""
        path = Path(self.env["ASHIATO_DATA"]) / "ashiato.sqlite3"
        with closing(sqlite3.connect(path)) as database:
            asked = database.execute("SELECT stalls, longest_stall FROM agents_serverprocess")
            count, longest = asked.fetchone()
        return {"stalls": count, "longest ms": longest * 1000}


@contextmanager
def product(
    folder: Path, people: int, chats: int, env: dict[str, str] | None = None
) -> Iterator[Product]:
    port, log = free_port(), folder / "serve.log"
    own = {"ASHIATO_DATA": str(folder / "data"), "ASHIATO_MODEL": "demo", "PORT": str(port)}
    env = own | (env or {})
    with child("manage.py", "serve", env=env, log=log) as process:
        wait_for_page(f"http://127.0.0.1:{port}/login/", process, log)
        accounts = output("tests.bench.accounts", people, chats, env=env)
        yield Product(process=process, port=port, people=accounts, env=env)


def output(module: str, *arguments: str | int, env: dict[str, str]):
    """Return a module's output, as JSON."""
    pipes = {"stdout": -1, "stderr": None}
    with child("-m", module, *arguments, env=env, **pipes) as process, process.stdout as pipe:
        said = pipe.read()
        if process.wait():
            raise DiedEarly(module)
        return orjson.loads(said)


def send_order(process: psutil.Popen, order: dict) -> dict:
    """Send an order to a waiting process, and return its response."""
    process.stdin.write(orjson.dumps(order) + b"\n")
    process.stdin.flush()
    if not (line := process.stdout.readline()):
        raise DiedEarly(str(process.args))
    return orjson.loads(line)
