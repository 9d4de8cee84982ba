"""Fails if the chat has become dearer: `python -m tests.bench.guard` on a quiet machine.

It takes about a minute. 50 chats are measured in turn with the bare relay, and 100 chats start
together with short answers, which shows what a run costs before its tokens. Medians of three
rounds are compared with LIMITS: lower a limit when the product has become lighter, and raise
one only with the reason in the commit.
"""

import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.bench import chat
from tests.bench.engine import fake_llm
from tests.bench.fake_llm import Plan
from tests.bench.processes import ROOT, clean_environment
from tests.bench.rounds import Size

ROUNDS = 3
CHATS = 50
STARTS = 100
SHORT = Plan(tokens=5, rate=50, paragraph=40)
# What was measured when they were set, and a tenth more. GOALS is where they should go.
LIMITS = {
    "CPU × the relay at 50 chats": 3.05,
    "first word at 50 chats (ms)": 30,
    "p99 of a token's delay at 50 chats (ms)": 95,
    "CPU of a start (ms)": 15,
    "first word at 100 starts (ms)": 400,
    "memory (MB)": 250,
    "modules of the product at its start": 2_700,
}
GOALS = {
    "CPU × the relay at 50 chats": 1.8,
    "first word at 50 chats (ms)": 25,
    "p99 of a token's delay at 50 chats (ms)": 80,
    "CPU of a start (ms)": 5,
    "first word at 100 starts (ms)": 150,
    "memory (MB)": 240,
}
LOAD = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import django
django.setup()
import agents.web.asgi.server, project.asgi, project.urls
print(len(sys.modules))
"""


def measure() -> dict[str, float]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-guard-")))
        llm = stack.enter_context(fake_llm())
        relay = stack.enter_context(chat.relay_server(llm))
        sizes = {CHATS: chat.PLAN, STARTS: SHORT}
        servers = {}
        for chats, plan in sizes.items():
            own_folder = folder / str(chats)
            own_folder.mkdir()
            size = Size(rounds=ROUNDS, runs=0, at_once=(), chats=(chats,))
            server = chat.product_server(llm, own_folder, size, plan)
            servers[chats] = stack.enter_context(server)
        for server in (relay, *servers.values()):
            chat.measure_load(server, chat.WARM_UP, llm)
        rounds = []
        for _ in range(ROUNDS):
            bare = chat.measure_load(relay, CHATS, llm)
            chats = chat.measure_load(servers[CHATS], CHATS, llm)
            starts = chat.measure_load(servers[STARTS], STARTS, llm)
            figures = {
                "CPU × the relay at 50 chats": chats["cpu ms / 1000"] / bare["cpu ms / 1000"],
                "first word at 50 chats (ms)": chats["first word ms"],
                "p99 of a token's delay at 50 chats (ms)": chats["delay p99 ms"],
                "CPU of a start (ms)": starts["cpu ms / 1000"] * SHORT.tokens / 1000,
                "first word at 100 starts (ms)": starts["first word ms"],
                "memory (MB)": servers[CHATS].process.memory_info().rss / 1e6,
            }
            rounds.append(figures)
    medians = {name: median(each[name] for each in rounds) for name in rounds[0]}
    return medians | {"modules of the product at its start": count_modules()}


def count_modules() -> int:
    with tempfile.TemporaryDirectory() as folder:
        listed = subprocess.run(
            [sys.executable, "-c", LOAD],
            cwd=ROOT,
            env=clean_environment() | {"ASHIATO_DATA": folder},
            capture_output=True,
            text=True,
            check=True,
        )
    return int(listed.stdout)


def main() -> int:
    began = time.monotonic()
    figures = measure()
    print(f"{'':<42}{'now':>9}{'limit':>9}{'goal':>9}")
    for name, figure in figures.items():
        mark = "  over its limit" if figure > LIMITS[name] else ""
        goal = GOALS.get(name, "")
        print(f"{name:<42}{figure:>9.4g}{LIMITS[name]:>9.4g}{goal:>9}{mark}")
    print(f"{time.monotonic() - began:.0f} s")
    return int(any(figure > LIMITS[name] for name, figure in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
