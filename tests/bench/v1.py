"""What `/v1` costs beside the chat: the same answers, read by programs with a key."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.bench.chat import (
    PLAN,
    PRODUCT,
    RELAY,
    WARM_UP,
    Server,
    measure_load,
    product_server,
    relay_server,
)
from tests.bench.engine import fake_llm
from tests.bench.rounds import Reading, Size, rows

PROGRAMS = "Ashiato, /v1"
ENDED = "[DONE]"
ABOUT = f"""\
/v1: so many programs at once, each with a streamed chat completion of {PLAN.tokens} tokens,
{PLAN.rate} a second, beside as many pages of the chat. The agent has tools, so the first 200
characters of each answer are held back. × is the ratio to the bare relay; the rest is as in
Chat."""


class Programs(Server):
    """The same server, asked by programs."""

    def _page(self, number: int) -> dict:
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        return {"url": url, "kind": "v1", "key": self.people[number]["key"]}


def measure(size: Size) -> list[dict]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-")))
        llm = stack.enter_context(fake_llm())
        pages = stack.enter_context(product_server(llm, folder, size))
        servers = {
            RELAY: stack.enter_context(relay_server(llm)),
            PRODUCT: pages,
            PROGRAMS: Programs(pages.process, pages.port, ENDED, pages.people),
        }
        for server in servers.values():
            measure_load(server, WARM_UP, llm)
        readings = [
            Reading(number, name, level, measure_load(server, level, llm))
            for number in range(size.rounds)
            for level in size.chats
            for name, server in servers.items()
        ]
    return rows(readings, RELAY, ["cpu ms / 1000"])
