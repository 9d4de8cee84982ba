"""Programs that use too much memory, CPU time, processes or disk are stopped."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from agents.tools.mcp.configuration.config import ChildLimits
from agents.tools.mcp.connection import connection_lifecycle
from agents.tools.sandbox import supervisor
from tests.tools.conftest import connect

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    # On a busy machine it takes longer to learn why it ended.
    monkeypatch.setattr(connection_lifecycle, "RECHECK_SECONDS", 15)


@pytest.mark.parametrize(
    ("limits", "tool", "arguments", "sentence"),
    [
        ({"memory_mb": 100}, "hoard", {"mb": 150}, "used more than 100 MB of memory"),
        pytest.param(
            *({"cpu_seconds": 1}, "spin", {}, "used more than 1 s of CPU time in 5 minutes"),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            *({"processes": 4}, "spawn", {"count": 6}, "started more than 4 processes"),
            marks=pytest.mark.thorough,
        ),
    ],
)
async def test_a_program_over_its_limit_is_stopped_with_a_sentence(
    plain, limits, tool, arguments, sentence
):
    async with connect(plain(limits=ChildLimits(**limits))) as server:
        stopped = await server.call(tool, arguments)
        after = await server.call("add", {"a": 1, "b": 2})

    assert sentence in stopped.error
    assert after.output == "3"


async def test_a_program_within_its_limits_is_left_alone(plain):
    limits = ChildLimits(memory_mb=300, cpu_seconds=60, file_mb=10, processes=10)
    async with connect(plain(limits=limits)) as server:
        held = await server.call("hoard", {"mb": 50, "seconds": 1.5})

    assert held.output == f"held {50 * 2**20}"


async def test_a_huge_allocation_fails_before_it_is_measured(plain):
    async with connect(plain(limits=ChildLimits(memory_mb=100))) as server:
        refused = await server.call("hoard", {"mb": 2000, "seconds": 0})

    assert "MemoryError" in refused.error


async def test_a_file_over_the_limit_is_not_written(plain):
    async with connect(plain(limits=ChildLimits(file_mb=1))) as server:
        refused = await server.call("scribble", {"mb": 5})

    assert "File too large" in refused.error


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_shared_memory_counts_once_for_all_who_share_it():
    script = """
import mmap, os, time
shared = mmap.mmap(-1, 64 * 2**20)
shared.write(b"x" * 64 * 2**20)
os.fork()
shared[:: mmap.PAGESIZE]
os.write(1, b"%d\\n" % os.getpid())
time.sleep(60)
"""
    command = [sys.executable, "-c", script]
    options = {"stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(command, **options) as program:
        try:
            pids = [int(program.stdout.readline()) for _ in range(2)]
            used = sum(map(supervisor._own_bytes, pids))
        finally:
            os.killpg(program.pid, signal.SIGKILL)

    assert 64 * 2**20 < used < 2 * 64 * 2**20


@pytest.mark.skipif(not shutil.which("node"), reason="node isn't installed")
def test_node_starts_within_the_smallest_limit():
    limits = ChildLimits(memory_mb=64, file_mb=1, processes=20)
    script = "console.log(process.memoryUsage().rss)"
    watched, held = os.pipe()
    command = [sys.executable, "-I", "-S", supervisor.__file__, str(watched), ""]
    program = [json.dumps(limits.in_bytes()), shutil.which("node"), "-e", script]
    ran = subprocess.run(
        [*command, *program], capture_output=True, pass_fds=[watched], check=True
    )
    os.close(watched)
    os.close(held)

    assert json.loads(ran.stdout) > 0
