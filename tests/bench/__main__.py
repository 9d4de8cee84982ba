"""What the engine, the chat and the start cost, against the least that could do the same.

The machine may be busy with other things, so what counts are ratios: peers are measured in
turn, round after round, and compared within a round. Costs are CPU time of the process that is
measured; the medians of the rounds are printed.
"""

import argparse
import json
import platform
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import psutil

from tests.bench import (
    bodies,
    budgets,
    caches,
    chat,
    engine,
    growth,
    idle,
    ingestion,
    peers,
    plans,
    prose,
    scaled,
    search,
    startup,
    tool_selection,
    traces,
    v1,
)
from tests.bench.rounds import Size, format_table

WHOLE = Size(
    rounds=3,
    runs=10,
    at_once=(1, 20, 50),
    chats=(1, 10, 50, 100, 200),
    sockets=(1000,),
    idle=35,
    messages=(10, 100, 1000, 5000),
    sessions=(100, 10_000, 100_000),
    traces=200_000,
    plans=(10, 100, 1000),
    prose=40_000,
    documents=1_000,
)
QUICK = Size(
    rounds=1,
    runs=3,
    at_once=(1, 20),
    chats=(1, 10),
    sockets=(50,),
    idle=5,
    messages=(10, 200),
    sessions=(100, 1000),
    traces=2_000,
    plans=(10, 50),
    prose=10_000,
    documents=40,
)
PARTS: dict[str, tuple[Callable[[Size], list[dict]], str]] = {
    "engine": (engine.measure, engine.ABOUT),
    "chat": (chat.measure, chat.ABOUT),
    "v1": (v1.measure, v1.ABOUT),
    "bodies": (bodies.measure, bodies.ABOUT),
    "idle": (idle.measure, idle.ABOUT),
    "ingestion": (ingestion.measure, ingestion.ABOUT),
    "search": (search.measure, search.ABOUT),
    "budgets": (budgets.measure, budgets.ABOUT),
    "caches": (caches.measure, caches.ABOUT),
    "growth": (growth.measure, growth.ABOUT),
    "traces": (traces.measure, traces.ABOUT),
    "plans": (plans.measure, plans.ABOUT),
    "prose": (prose.measure, prose.ABOUT),
    "startup": (startup.measure, startup.ABOUT),
    "tools": (tool_selection.measure, tool_selection.ABOUT),
    "scaled": (scaled.measure, scaled.ABOUT),
    "peers": (peers.measure, peers.ABOUT),
}
# The others have extra requirements.
USUAL = [part for part in PARTS if part not in {"scaled", "peers"}]


def main() -> None:
    # Otherwise a kill would leave the children behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    options = _options()
    size = QUICK if options.quick else WHOLE
    size = replace(size, traces=options.traces or size.traces)
    report, began = {"machine": _machine()}, time.monotonic()
    for part in options.only or USUAL:
        measure, about = PARTS[part]
        report[part] = measure(size)
        if not options.json:
            print(format_table(about, report[part]), flush=True)
    report["seconds"] = round(time.monotonic() - began)
    print(json.dumps(report, indent=1, ensure_ascii=False) if options.json else _end(report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument("--quick", action="store_true", help="one small round, to try it")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts alone")
    parser.add_argument("--traces", type=int, help="so many runs in the list of traces")
    return parser.parse_args()


def _machine() -> dict:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": psutil.cpu_count(),
    }


def _end(report: dict) -> str:
    machine = report["machine"]
    where = f"{machine['cores']} cores, {machine['system']}, Python {machine['python']}"
    return f"Measured in {report['seconds']} s on {where}."


if __name__ == "__main__":
    main()
