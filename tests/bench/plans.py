"""The cost of a workflow step, which should not depend on the workflow's size."""

import tempfile
from pathlib import Path

from tests.bench.processes import child
from tests.bench.product import output
from tests.bench.rounds import Size, medians

ABOUT = """\
Plans: workflows of so many steps, all but the first and the last side by side, a hundred at
once; each step is a call of the calculator, with its rows and events kept. CPU is that of the
one process that does everything; × is the ratio to the smallest workflow, within a round."""


def measure(size: Size) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="ashiato-bench-") as folder:
        env = {"ASHIATO_DATA": str(Path(folder) / "data"), "ASHIATO_MODEL": "demo"}
        for command in ("migrate", "seed_demo"):
            with child("manage.py", command, env=env, log=Path(folder) / "log") as process:
                process.wait()
        rounds = [
            output("tests.bench.planned", *size.plans, env=env) for _ in range(size.rounds)
        ]
    return [_row([figures[at] for figures in rounds], rounds) for at in range(len(size.plans))]


def _row(figures: list[dict], rounds: list[list[dict]]) -> dict:
    cost = "CPU ms a step"
    ratios = [
        {"×": mine[cost] / first[0][cost]} for mine, first in zip(figures, rounds, strict=True)
    ]
    return medians(figures) | medians(ratios)
