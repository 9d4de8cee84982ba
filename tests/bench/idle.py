"""The cost of idle pages, and of all pages reconnecting at once."""

import tempfile
import time
from itertools import islice
from pathlib import Path

from tests.bench.chat import Watch
from tests.bench.processes import child, cpu, resident_mb
from tests.bench.product import Product, product, send_order
from tests.bench.rounds import Size

TABS = 10
WARM_UP = 20
SETTLED = 2.0
ECHOES = 200
STORM = 10.0
TOLD_EVERY = 6.0
ABOUT = f"""\
Idle: so many pages of people who are signed in, open at once and doing nothing. Memory is what
the server needs for each of them, CPU a share of one core. An echo is a frame that is refused,
from the page and back. Then half of them lose their connection and come back within
{STORM:.0f} s; caught up is from there until a page is up to date, at so much CPU each. Others
are the cores that the rest of the machine used then: where they are large, doubt the times.
Stalls are moments in which the event loop was held up for more than 250 ms."""


def measure(size: Size) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="ashiato-bench-") as folder:
        people = max(size.sockets) // TABS
        with product(Path(folder), people, TABS) as server:
            _measure_open_pages(server, WARM_UP, 0)
            return [_measure_open_pages(server, count, size.idle) for count in size.sockets]


def _measure_open_pages(server: Product, count: int, seconds: float) -> dict:
    empty = resident_mb(server.process)
    with child("-m", "tests.bench.idle_load", stdin=-1, stdout=-1, stderr=None) as pages:
        opened = send_order(pages, {"open": list(islice(server.tabs(), count))})
        time.sleep(SETTLED)
        memory = resident_mb(server.process) - empty
        used = _idle_cpu_percent(server, seconds)
        echo = send_order(pages, {"echo": ECHOES})
        watched = Watch(server.process)
        storm = send_order(pages, {"storm": count // 2, "seconds": STORM if seconds else 0})
        spent, others = watched.spent(storm.pop("client cpu s"))
    figures = {"KB a page": memory * 1000 / count, "cpu %": used, **opened, **echo, **storm}
    figures |= {"cpu ms each": spent * 1000 / (count // 2), "others": others}
    time.sleep(TOLD_EVERY if seconds else 0)
    figures |= server.stalls()
    return {"pages": count} | {name: round(value, 2) for name, value in figures.items()}


def _idle_cpu_percent(server: Product, seconds: float) -> float:
    """Return the percentage of a core used while idle."""
    before = cpu(server.process)
    time.sleep(seconds)
    return 100 * (cpu(server.process) - before) / max(seconds, 1)
