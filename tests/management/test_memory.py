"""Whether the threads of a server share one arena."""

import os
import subprocess
import sys

import pytest

from tests.bench.processes import ROOT

# An arena is anonymous memory that begins at a multiple of 64 MB.
ALLOCATE = """
import sys, threading
from pathlib import Path
from agents.management.memory import share_memory

if sys.argv[1:] == ["shared"]:
    share_memory()
ready = threading.Barrier(4)

def allocate():
    kept = [bytes(2_000) for _ in range(1_000)]
    ready.wait()
    return kept

threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
mappings = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
starts = [int(line[0].split("-")[0], 16) for line in mappings if len(line) == 5]
print(sum(start % (64 << 20) == 0 for start in starts))
"""


def arenas(*arguments):
    command = [sys.executable, "-c", ALLOCATE, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="not glibc")
def test_threads_share_one_arena():
    assert arenas() > 0
    assert arenas("shared") == 0
