"""How long a PDF of 100 pages takes, and what the chat's delay is meanwhile."""

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from statistics import median

from tests.bench.chat import Server, measure_load, product_server
from tests.bench.engine import fake_llm
from tests.bench.product import output
from tests.bench.rounds import Size

PAGES = 100
CHATS = 10
IDLE_ROUNDS = 3
MAX_ROUNDS = 12
ABOUT = f"""\
Documents: {CHATS} people chat while a PDF of {PAGES} pages of text is read and indexed in the
background of the same process. Seconds are from the upload to ready, the wait in the queue
included; delays are those of a token from the model to the page."""


def measure(size: Size) -> list[dict]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-")))
        llm = stack.enter_context(fake_llm())
        rounds = replace(size, rounds=IDLE_ROUNDS + MAX_ROUNDS + 1, chats=(CHATS,))
        server = stack.enter_context(product_server(llm, folder, rounds))
        measure_load(server, CHATS, llm)
        idle = [measure_load(server, CHATS, llm) for _ in range(IDLE_ROUNDS)]
        env = {"ASHIATO_DATA": str(folder / "data")}
        document = output("tests.bench.queued_pdf", PAGES, env=env)
        database = folder / "data" / "ashiato.sqlite3"
        busy = list(_loads(server, llm, database, document["pk"]))
        seconds = _wait(database, document["pk"], document["queued"])
    return [_row("idle", idle, 0.0, idle), _row("reading", busy, seconds, idle)]


def _loads(server: Server, llm: int, database: Path, document: int) -> Iterator[dict]:
    """Yield the figures of the chat while the document is read, at least once."""
    for _ in range(MAX_ROUNDS):
        yield measure_load(server, CHATS, llm)
        if _status(database, document)[0] in {"ready", "failed"}:
            return


def _wait(database: Path, document: int, since: float) -> float:
    """Return how many seconds it took until the document was ready."""
    end = time.time() + 300
    while time.time() < end:
        status, problem, indexed = _status(database, document)
        if status == "ready":
            return indexed - since
        if status == "failed":
            raise RuntimeError(problem)
        time.sleep(0.2)
    raise TimeoutError("The document isn't ready after 300 s.")


def _status(database: Path, document: int) -> tuple[str, str, float]:
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        query = (
            "SELECT status, problem, unixepoch(indexed_at, 'subsec') "
            "FROM agents_document WHERE id = ?"
        )
        if sqlite3.sqlite_version_info < (3, 42):
            query = query.replace(
                "unixepoch(indexed_at, 'subsec')", "(julianday(indexed_at) - 2440587.5) * 86400"
            )
        return connection.execute(query, [document]).fetchone()


def _row(name: str, loads: list[dict], seconds: float, idle: list[dict]) -> dict:
    p99 = median(load["delay p99 ms"] for load in loads)
    return {
        "chat": name,
        "seconds": round(seconds, 1),
        "delay p50 ms": round(median(load["delay p50 ms"] for load in loads), 1),
        "delay p99 ms": round(p99, 1),
        "p99 ×": round(p99 / median(load["delay p99 ms"] for load in idle), 2),
        "ended %": median(load["ended %"] for load in loads),
        "rounds": len(loads),
        "others": round(median(load["others"] for load in loads), 2),
    }
