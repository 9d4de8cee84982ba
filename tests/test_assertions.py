"""No test compares wall time: on a busy machine it says nothing about the product."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
TIMED = re.compile(
    r"assert\b.*\b(?:monotonic|perf_counter|time\.time|loop\(\)\.time)\(\) - \w+\s*<"
)
MEASURING = {"bench", "faults", "scaled", "browser"}
# What they test is a time limit of sockets, servers or parsers.
EXCEPTIONS = {
    "agents/test_discovery.py",
    "agents/test_hostile_files.py",
    "agents/test_request_timeout.py",
}


def test_no_assertion_is_an_upper_bound_of_wall_time():
    paths = {path.relative_to(TESTS) for path in TESTS.rglob("*.py")}
    timed = {
        str(path)
        for path in paths
        if path.parts[0] not in MEASURING and TIMED.search((TESTS / path).read_text())
    }

    assert timed - EXCEPTIONS == set()
