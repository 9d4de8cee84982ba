"""Users in chats: each sends one message and reads the whole answer."""

import asyncio
import sys
import time

import orjson
from aiohttp import ClientSession, TCPConnector

from tests.bench.rounds import percentile
from tests.bench.tabs import KINDS, Tab

SPREAD = 1.0
TIMEOUT_SECONDS = 60


async def load(order: dict) -> None:
    """Connect, report, wait for the start, and report the results."""
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        tabs = [await _open_tab(session, page, order) for page in order["pages"]]
        _say({"connected": len(tabs)})
        await asyncio.to_thread(sys.stdin.readline)
        asking = [tab.ask(SPREAD * n / len(tabs)) for n, tab in enumerate(tabs)]
        await asyncio.wait(
            [asyncio.create_task(each) for each in asking], timeout=TIMEOUT_SECONDS
        )
        _say(_summarize(tabs, order["tokens"]))
        await asyncio.to_thread(sys.stdin.readline)


async def _open_tab(session: ClientSession, page: dict, order: dict) -> Tab:
    tab = KINDS[page.get("kind", "page")](session, page, order)
    await tab.open()
    return tab


def _summarize(tabs: list[Tab], tokens: int) -> dict[str, float]:
    delays = [delay for tab in tabs for delay in tab.delays]
    first_words = [tab.first_word for tab in tabs if tab.first_word is not None]
    return {
        "first word ms": percentile(first_words, 0.5),
        "delay p50 ms": percentile(delays, 0.5),
        "delay p99 ms": percentile(delays, 0.99),
        "delivered %": 100 * len(delays) / (tokens * len(tabs)),
        "ended %": 100 * sum(tab.is_over for tab in tabs) / len(tabs),
        "tokens": len(delays),
        "client cpu s": time.process_time(),
    }


def _say(value: dict) -> None:
    print(orjson.dumps(value).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(load(orjson.loads(sys.stdin.readline())))
