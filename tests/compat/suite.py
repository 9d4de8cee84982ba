"""Tests that are rows of the table too: run as they are, and counted."""

import asyncio
import re
import subprocess
import sys

from tests.compat.packages import ROOT
from tests.compat.rows import NotTried

TEST_SECONDS = 580
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


async def run_tests(*arguments: str) -> str:
    """Run tests of ours, and return how many passed."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TEST_SECONDS,
    )
    counts = {word: int(number) for number, word in COUNTS.findall(done.stdout)}
    if done.returncode == 0 and not counts.get("passed"):
        reason = re.search(r"SKIPPED.*?: (.+)", done.stdout)
        raise NotTried(reason[1] if reason else "The tests were skipped.")
    assert done.returncode == 0, done.stdout.strip().splitlines()[-1:]
    return f"{counts['passed']} tests"
