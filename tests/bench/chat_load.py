"""People at their chats: each sends one message and reads until the answer is whole."""

import asyncio
import sys
import time
from dataclasses import dataclass, field
from uuid import uuid4

import orjson
from aiohttp import ClientSession, ClientWebSocketResponse, TCPConnector, WSMsgType

from tests.bench.fake_llm import now, stamps
from tests.bench.rounds import percentile

SPREAD = 1.0
PATIENCE = 60


@dataclass
class Tab:
    """One page on one chat."""

    socket: ClientWebSocketResponse
    end: str
    asked: int = 0
    first_word: float | None = None
    seen: set[int] = field(default_factory=set)
    delays: list[float] = field(default_factory=list)
    is_over: bool = False

    async def ask(self, wait: float) -> None:
        await asyncio.sleep(wait)
        frame = {"type": "message", "text": "Hello", "client_id": uuid4().hex}
        self.asked = now()
        await self.socket.send_str(orjson.dumps(frame).decode())
        async for message in self.socket:
            if message.type is WSMsgType.TEXT and self._read(message.data, now()):
                return

    def _read(self, text: str, at: int) -> bool:
        """Note what is new; a page may be shown the same word many times."""
        fresh = set(stamps(text)) - self.seen
        if fresh:
            self.seen |= fresh
            self.delays += [(at - stamp) / 1000 for stamp in fresh]
            self.first_word = self.first_word or (at - self.asked) / 1000
        self.is_over = self.end in text
        return self.is_over


async def load(order: dict) -> None:
    """Connect, say so, wait for the word to begin, and tell what was seen."""
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        tabs = [await _opened(session, page, order["end"]) for page in order["pages"]]
        _say({"connected": len(tabs)})
        await asyncio.to_thread(sys.stdin.readline)
        asking = [tab.ask(SPREAD * n / len(tabs)) for n, tab in enumerate(tabs)]
        await asyncio.wait([asyncio.create_task(each) for each in asking], timeout=PATIENCE)
        _say(_seen(tabs, order["tokens"]))
        await asyncio.to_thread(sys.stdin.readline)


async def _opened(session: ClientSession, page: dict, end: str) -> Tab:
    headers = {"Origin": page["origin"], "Cookie": page["cookie"]}
    return Tab(await session.ws_connect(page["url"], headers=headers, compress=0), end)


def _seen(tabs: list[Tab], tokens: int) -> dict[str, float]:
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
