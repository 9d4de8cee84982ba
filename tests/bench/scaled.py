"""One web process compared with two: whether users are served as well."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import chat
from tests.bench.chat import ENDED, PLAN, WARM_UP, Server
from tests.bench.engine import fake_llm
from tests.bench.processes import child, free_port, wait_for_page
from tests.bench.product import output
from tests.bench.rounds import Reading, Size, rows
from tests.scaled.fleet import services_in

ONE, TWO = "1 web, 1 worker", "2 web, 1 worker"
FLEETS = {ONE: 1, TWO: 2}
MAX_CHATS = 100
ABOUT = """\
Scaled: the table of the chat on PostgreSQL and Redis, with one web process and with two, whose
people are spread over both; a worker drives the runs. CPU and memory are those of all our
processes together, × is the ratio to one web process. All of it shares the cores of this
machine with the people and the model, so nothing is driven to its limit here: “bears ×” is how
much more as many cores as processes would carry if each is used up at this cost."""


@dataclass
class Fleet(Server):
    ports: tuple[int, ...] = ()

    def _page(self, number: int) -> dict:
        person, port = self.people[number], self.ports[number % len(self.ports)]
        where = f"127.0.0.1:{port}"
        url = f"ws://{where}/ws/chat/{person['chats'].pop()}/"
        return {"url": url, "origin": f"http://{where}", "cookie": person["cookie"]}


def measure(size: Size) -> list[dict]:
    levels = [count for count in size.chats if count <= MAX_CHATS]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-")))
        llm = stack.enter_context(fake_llm())
        services = stack.enter_context(services_in(folder)).environment
        readings = [
            Reading(number, name, level, figures)
            for number in range(size.rounds)
            for name, webs in FLEETS.items()
            for level, figures in _figures(webs, levels, llm, folder, services)
        ]
    found = rows(readings, ONE, ["cpu ms / 1000"])
    return [{**row, "bears ×": FLEETS[row["peer"]] / row["cpu ms / 1000 ×"]} for row in found]


def _figures(webs, levels, llm, folder, services) -> Iterator[tuple[int, dict]]:
    with _fleet(webs, len(levels) + 1, max(levels), llm, folder, services) as server:
        chat.measure_load(server, WARM_UP, llm)
        for level in levels:
            yield level, chat.measure_load(server, level, llm)


@contextmanager
def _fleet(
    webs: int, chats: int, people: int, llm: int, folder: Path, services: dict[str, str]
) -> Iterator[Server]:
    ports, log = tuple(free_port() for _ in range(webs)), folder / "fleet.log"
    env = services | {
        "ASHIATO_DATA": str(folder / "data"),
        "ASHIATO_MODEL": f"openai/{PLAN.model}",
        "ASHIATO_MODEL_URL": f"http://127.0.0.1:{llm}/v1",
        "ASHIATO_MODEL_KEY": "none",
        "ASHIATO_ORIGINS": ",".join(f"http://127.0.0.1:{port}" for port in ports),
        "ASHIATO_WORKER_RUNS": str(people),
    }
    with child("-m", "tests.bench.fleet", 1, *ports, env=env, log=log) as process:
        for port in ports:
            wait_for_page(f"http://127.0.0.1:{port}/login/", process, log)
        accounts = output("tests.bench.accounts", max(people, WARM_UP), chats, env=env)
        yield Fleet(process, ports[0], ENDED, accounts, ports=ports)
