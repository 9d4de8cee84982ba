"""What a cached tool call costs: a hit, a miss, and the same call without a cache."""

import tempfile

from tests.bench.product import output
from tests.bench.rounds import Size

ABOUT = """\
Caches: a read-only tool that takes 20 ms, called one after the other by one person on SQLite,
with the checks of rights. × is the ratio to a call without a cache, in elapsed time."""


def measure(size: Size) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="ashiato-bench-") as folder:
        env = {"ASHIATO_DATA": folder, "ASHIATO_MODEL": "demo"}
        found: list[dict] = output("tests.bench.cached", 100 * size.rounds, env=env)["rows"]
    return found
