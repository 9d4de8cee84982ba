"""One web process and one worker compared with two of each: whether they do twice as much."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import redis

from tests.bench import chat
from tests.bench.chat import ENDED, PLAN, WARM_UP, Server
from tests.bench.engine import fake_llm
from tests.bench.processes import child, cpu, free_port, wait_for_page
from tests.bench.product import output
from tests.bench.rounds import Reading, Size, rows
from tests.scaled.fleet import scaled_mode, start_services
from tests.services import PostgreSQL, Redis

ONE, TWO = "1 web, 1 worker", "2 web, 2 workers"
# How many of each.
FLEETS = {ONE: 1, TWO: 2}
MAX_CHATS = 100
# PostgreSQL's connections count for themselves first.
COUNTED_SECONDS = 1.5
ABOUT = f"""\
Scaled: the table of the chat on PostgreSQL and Redis, with one web process and one worker and
with two of each, whose people are spread over them. CPU and memory are those of all our
processes together, × is the ratio to one of each. All of it shares the cores of this machine
with the people and the model, so nothing is driven to its limit here: “bears ×” is how much
more as many cores as processes would carry if each is used up at this cost. The columns that
end in “an answer” are for one of {PLAN.tokens} tokens: CPU milliseconds by program, and what is
sent to PostgreSQL and Redis."""


@dataclass
class Fleet(Server):
    ports: tuple[int, ...] = ()

    def _page(self, number: int) -> dict:
        person, port = self.people[number], self.ports[number % len(self.ports)]
        where = f"127.0.0.1:{port}"
        url = f"ws://{where}/ws/chat/{person['chats'].pop()}/"
        return {"url": url, "origin": f"http://{where}", "cookie": person["cookie"]}


@dataclass
class Services:
    """PostgreSQL and Redis, and what was asked of them so far."""

    database: PostgreSQL
    layer: Redis

    def spent(self, fleet: psutil.Popen) -> dict[str, float]:
        """Return CPU seconds by program, commits, written rows and Redis commands so far."""
        time.sleep(COUNTED_SECONDS)
        spent = {"web": 0.0, "worker": 0.0}
        for process in fleet.children():
            spent["worker" if "worker" in process.cmdline() else "web"] += cpu(process)
        spent["PostgreSQL"] = cpu(psutil.Process(self.database.process.pid))
        spent["Redis"] = cpu(psutil.Process(self.layer.process.pid))
        with psycopg.connect(self.database.url) as connection:
            row = connection.execute(
                "SELECT sum(xact_commit), sum(tup_inserted + tup_updated + tup_deleted)"
                " FROM pg_stat_database"
            ).fetchone()
        spent["commits"], spent["rows"] = map(float, row)
        with redis.Redis.from_url(self.layer.url) as client:
            spent["commands"] = float(client.info("stats")["total_commands_processed"])
        return spent


def measure(size: Size) -> list[dict]:
    levels = [count for count in size.chats if count <= MAX_CHATS]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-")))
        llm = stack.enter_context(fake_llm())
        servers = PostgreSQL(folder / "postgresql"), Redis(folder / "redis")
        services = Services(*stack.enter_context(start_services(*servers)))
        readings = [
            Reading(number, name, level, figures)
            for number in range(size.rounds)
            for name, count in FLEETS.items()
            for level, figures in _figures(count, levels, llm, folder, services)
        ]
    found = rows(readings, ONE, ["cpu ms / 1000"])
    return [{**row, "bears ×": FLEETS[row["peer"]] / row["cpu ms / 1000 ×"]} for row in found]


def _figures(count, levels, llm, folder, services) -> Iterator[tuple[int, dict]]:
    with _fleet(count, len(levels) + 1, max(levels), llm, folder, services) as server:
        chat.measure_load(server, WARM_UP, llm)
        for level in levels:
            before = services.spent(server.process)
            figures = chat.measure_load(server, level, llm)
            after = services.spent(server.process)
            for name, value in after.items():
                factor = 1000 if name in {"web", "worker", "PostgreSQL", "Redis"} else 1
                figures[f"{name} an answer"] = factor * (value - before[name]) / level
            yield level, figures


@contextmanager
def _fleet(
    count: int, chats: int, people: int, llm: int, folder: Path, services: Services
) -> Iterator[Server]:
    """Start as many web processes as workers."""
    ports, log = tuple(free_port() for _ in range(count)), folder / "fleet.log"
    environment = scaled_mode(services.database, services.layer, count).environment
    env = environment | {
        "ASHIATO_DATA": str(folder / "data"),
        "ASHIATO_MODEL": f"openai/{PLAN.model}",
        "ASHIATO_MODEL_URL": f"http://127.0.0.1:{llm}/v1",
        "ASHIATO_MODEL_KEY": "none",
        "ASHIATO_ORIGINS": ",".join(f"http://127.0.0.1:{port}" for port in ports),
        "ASHIATO_WORKER_RUNS": str(people),
    }
    with child("-m", "tests.bench.fleet", count, *ports, env=env, log=log) as process:
        for port in ports:
            wait_for_page(f"http://127.0.0.1:{port}/login/", process, log)
        accounts = output("tests.bench.accounts", max(people, WARM_UP), chats, env=env)
        yield Fleet(process, ports[0], ENDED, accounts, ports=ports)
