"""The cost of the trace list and a run's page with very many runs."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.processes import DiedEarly, child
from tests.bench.product import output
from tests.bench.rounds import Size
from tests.services import NotThere, PostgreSQL

EVENTS_A_RUN = 10
SEEDS_WITHIN = 1800
ABOUT = """\
Traces: pages of a reviewer who may see everybody's runs, made-up ones, with about ten times as
many events. Milliseconds from the request to the whole page; of twenty, the slowest is the 95th
percentile. CPU is that of the process, which is all there is with SQLite; PostgreSQL works
beside it. The last page is of a run with 200 steps, 5,000 events and 20 MB of tool output."""


def measure(size: Size) -> list[dict]:
    return [row for name in ("sqlite", "postgresql") for row in _measured(name, size)]


def _measured(name: str, size: Size) -> Iterator[dict]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-")))
        try:
            env = stack.enter_context(_database(name, folder))
        except NotThere:
            return
        _manage(env, "migrate")
        _manage(env, "seed_runs", "--runs", size.traces, "--events", size.traces * EVENTS_A_RUN)
        for row in output("tests.bench.traced", env=env):
            yield {"database": name, "runs": size.traces} | row


@contextmanager
def _database(name: str, folder: Path) -> Iterator[dict[str, str]]:
    env = {"ASHIATO_DATA": str(folder / "data"), "ASHIATO_MODEL": "demo"}
    if name == "sqlite":
        yield env
        return
    server = PostgreSQL(folder / "postgresql")
    server.start()
    try:
        yield env | {"ASHIATO_DATABASE_URL": server.url}
    finally:
        server.stop()


def _manage(env: dict[str, str], *arguments: str | int) -> None:
    with child("manage.py", *arguments, env=env) as process:
        if process.wait(SEEDS_WITHIN):
            raise DiedEarly(str(arguments))
