"""What limits cost: a model call without any, with one, and with five of them."""

import tempfile

from tests.bench.product import output
from tests.bench.rounds import Size

ABOUT = """\
Budgets: a streamed reply of three words that takes 20 ms, one after the other on SQLite,
reserved before and settled after. × is the ratio to a call without limits, in elapsed time."""


def measure(size: Size) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="ashiato-bench-") as folder:
        env = {"ASHIATO_DATA": folder, "ASHIATO_MODEL": "demo"}
        found: list[dict] = output("tests.bench.metered", 50 * size.rounds, env=env)["rows"]
    return found
