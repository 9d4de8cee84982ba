"""The cost of the engine's loop, compared with one written by hand."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import orjson
import psutil

from tests.bench.engine_peers import AS_IT_COMES, PEERS, PLAN
from tests.bench.processes import DiedEarly, child, free_port, wait_for_port
from tests.bench.rounds import Reading, Size, rows

ABOUT = f"""\
Engine: so many runs at once, of {PLAN.steps} tool steps and {PLAN.tokens} streamed tokens.
CPU and wall time are those of one run; × is the ratio to “{AS_IT_COMES}”."""


def measure(size: Size) -> list[dict]:
    with ExitStack() as stack:
        port = stack.enter_context(fake_llm())
        peers = {name: stack.enter_context(_peer(name, port)) for name in PEERS}
        readings = [
            Reading(number, name, level, _measured(peer, size.runs, level))
            for number in range(size.rounds)
            for level in size.at_once
            for name, peer in peers.items()
        ]
    return rows(readings, AS_IT_COMES, ["cpu ms", "wall ms"])


@contextmanager
def fake_llm(*models: str) -> Iterator[int]:
    """Start a model provider with these models, or any; yield its port."""
    port = free_port()
    with child("-m", "tests.bench.fake_llm", port, *models) as process:
        wait_for_port(port, process)
        yield port


@contextmanager
def _peer(name: str, port: int) -> Iterator[psutil.Popen]:
    """Start a warmed-up process that measures one peer on request."""
    pipes = {"stdin": -1, "stdout": -1, "stderr": None}
    with child("-m", "tests.bench.engine_peers", name, port, **pipes) as process:
        _measured(process, 2, 1)
        yield process


def _measured(peer: psutil.Popen, runs: int, at_once: int) -> dict[str, float]:
    order = {"runs": runs if at_once == 1 else at_once, "at_once": at_once}
    peer.stdin.write(orjson.dumps(order) + b"\n")
    peer.stdin.flush()
    if not (line := peer.stdout.readline()):
        raise DiedEarly(str(peer.args))
    return orjson.loads(line)
