"""Fails if memory grows while the chat is used for long: `python -m tests.bench.soak`.

People ask one question after another, 50 at a time, for 30 minutes. What the memory is in the
last fifth of that time is compared with the second fifth: by then everything is loaded.
"""

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

from tests.bench import chat
from tests.bench.engine import fake_llm
from tests.bench.rounds import Size

# Chats that are made at a time.
BATCH = 20
MAX_GROWTH = 1.05


def measure(minutes: float, chats: int) -> Iterator[dict[str, float]]:
    """Yield the figures of each minute."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-soak-")))
        llm = stack.enter_context(fake_llm())
        size = Size(rounds=BATCH, runs=0, at_once=(), chats=(chats,))
        server = stack.enter_context(chat.product_server(llm, folder, size))
        database = folder / "data" / "ashiato.sqlite3"
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            began = time.monotonic()
            loads = []
            while time.monotonic() - began < 60:
                if len(server.people[0]["chats"]) < 2:
                    environment = {"ASHIATO_DATA": str(folder / "data")}
                    server.people = chat.people(size, environment)
                loads.append(chat.measure_load(server, chats, llm))
            yield {
                "memory (MB)": server.process.memory_info().rss / 1e6,
                "CPU ms / 1,000 tokens": median(load["cpu ms / 1000"] for load in loads),
                "p99 (ms)": median(load["delay p99 ms"] for load in loads),
                "delivered %": min(load["delivered %"] for load in loads),
                "longest block (ms)": 1000 * _longest_block(database),
            }


def _longest_block(database: Path) -> float:
    """Return how long the event loop was blocked at most, if that was noted, in seconds."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        query = "SELECT max(longest_stall) FROM agents_serverprocess"
        [seconds] = connection.execute(query).fetchone()
    return seconds or 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--chats", type=int, default=50)
    options = parser.parse_args()
    memory: list[float] = []
    for minute, figures in enumerate(measure(options.minutes, options.chats), start=1):
        if not memory:
            print("".join(f"{name:>24}" for name in ("minute", *figures)))
        print("".join(f"{value:>24.4g}" for value in (minute, *figures.values())), flush=True)
        memory.append(figures["memory (MB)"])
    fifth = max(1, len(memory) // 5)
    growth = median(memory[-fifth:]) / median(memory[fifth : 2 * fifth] or memory)
    print(f"memory at the end × memory at the start: {growth:.3f} (limit {MAX_GROWTH})")
    return int(growth > MAX_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
