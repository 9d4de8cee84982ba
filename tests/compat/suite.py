"""Tests that are rows of the table too: run as they are, and counted."""

import re

from tests.compat.product import run_python
from tests.compat.rows import NotTried

COUNTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


async def run_tests(*arguments: str) -> str:
    """Run tests of ours, and return how many passed."""
    options = ("-q", "-rs", "-p", "no:cacheprovider")
    status, output, _ = await run_python("-m", "pytest", *options, *arguments)
    counts = {word: int(number) for number, word in COUNTS.findall(output)}
    if status == 0 and not counts.get("passed"):
        reason = re.search(r"SKIPPED.*?: (.+)", output)
        raise NotTried(reason[1] if reason else "The tests were skipped.")
    assert status == 0, output.strip().splitlines()[-1:]
    return f"{counts['passed']} tests"
