"""Time until the first page is served, and the memory used then."""

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.processes import DiedEarly, child, cpu, free_port, resident_mb, wait_for_page
from tests.bench.rounds import Size, medians

ABOUT = """\
Start: until the login page is served, with the demo model; the first start makes and seeds the
database. Memory is that of a server which has served that page, and the peak of `ask`."""
SETTLED = 1.0
PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


def measure(size: Size) -> list[dict]:
    rounds: dict[str, list[dict[str, float]]] = {}
    for _ in range(size.rounds):
        for name, figures in _round():
            rounds.setdefault(name, []).append(figures)
    return [{"what": name} | medians(each) for name, each in rounds.items()]


def _round():
    with tempfile.TemporaryDirectory(prefix="ashiato-bench-") as folder:
        env = {"ASHIATO_DATA": f"{folder}/data", "ASHIATO_MODEL": "demo"}
        yield "manage.py serve, the first time", _serve(Path(folder), env)
        yield "manage.py serve, again", _serve(Path(folder), env)
        yield 'manage.py ask "2+2"', _ask(env)


def _serve(folder: Path, env: dict[str, str]) -> dict[str, float]:
    port, log, began = free_port(), folder / "serve.log", time.monotonic()
    with child("manage.py", "serve", env=env | {"PORT": str(port)}, log=log) as process:
        wait_for_page(f"http://127.0.0.1:{port}/login/", process, log)
        figures = {"cpu s": cpu(process), "wall s": time.monotonic() - began}
        time.sleep(SETTLED)
        return figures | {"rss MB": resident_mb(process)}


def _ask(env: dict[str, str]) -> dict[str, float]:
    began = time.monotonic()
    with child("manage.py", "ask", "2+2", env=env) as process:
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise DiedEarly(str(process.args))
    return {
        "cpu s": used.ru_utime + used.ru_stime,
        "wall s": time.monotonic() - began,
        "rss MB": used.ru_maxrss * PEAK_UNIT / 1e6,
    }
