"""Open pages: they connect, wait, get an error now and then, and reconnect."""

import asyncio
import sys
import time

import orjson
from aiohttp import ClientSession, ClientWebSocketResponse, TCPConnector, WSMsgType

from tests.bench.rounds import percentile

AT_ONCE = 25
UP_TO_DATE = 'id="composer-state"'
REFUSED = 'id="notice"'
TIMEOUT_SECONDS = 30


class Page:
    """Reads all the time like a browser, to answer the server's pings."""

    def __init__(self, address: dict, session: ClientSession) -> None:
        self.address = address
        self.session = session

    async def open(self) -> float:
        """Return the seconds until it is up to date."""
        began = time.monotonic()
        headers = {"Origin": self.address["origin"], "Cookie": self.address["cookie"]}
        self.socket = await self.session.ws_connect(
            self.address["url"], headers=headers, compress=0
        )
        self._expect(UP_TO_DATE)
        self.reading = asyncio.create_task(self._read(self.socket))
        return await self._shown() - began

    async def echo(self) -> float:
        began = time.monotonic()
        self._expect(REFUSED)
        await self.socket.send_str('{"type": "echo"}')
        return await self._shown() - began

    async def close(self) -> None:
        await self.socket.close()
        await self.reading

    def _expect(self, words: str) -> None:
        self._words, self._shown_at = words, asyncio.get_running_loop().create_future()

    async def _shown(self) -> float:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self._shown_at

    async def _read(self, socket: ClientWebSocketResponse) -> None:
        async for message in socket:
            is_it = message.type is WSMsgType.TEXT and self._words in message.data
            if is_it and not self._shown_at.done():
                self._shown_at.set_result(time.monotonic())


async def open_all(pages: list[Page]) -> dict:
    gate, began = asyncio.Semaphore(AT_ONCE), time.monotonic()

    async def opened(page: Page) -> None:
        async with gate:
            await page.open()

    await asyncio.gather(*map(opened, pages))
    return {"opened / s": len(pages) / (time.monotonic() - began)}


async def echo(pages: list[Page], times: int) -> dict:
    delays = [await pages[number % len(pages)].echo() for number in range(times)]
    return {"echo p95 ms": percentile(delays, 0.95) * 1000}


async def storm(pages: list[Page], seconds: float) -> dict:
    """Disconnect all pages at once, and reconnect them evenly within these seconds."""
    before = time.process_time()
    for page in pages:
        await page.close()

    async def again(page: Page, wait: float) -> float:
        await asyncio.sleep(wait)
        return await page.open()

    waits = [seconds * number / len(pages) for number in range(len(pages))]
    came = await asyncio.gather(*map(again, pages, waits), return_exceptions=True)
    delays = [each for each in came if isinstance(each, float)]
    return {
        "came back %": 100 * len(delays) / len(pages),
        "caught up p95 ms": percentile(delays, 0.95) * 1000,
        "client cpu s": time.process_time() - before,
    }


async def obey(pages: list[Page], order: dict, session: ClientSession) -> dict:
    match order:
        case {"open": addresses}:
            pages += [Page(address, session) for address in addresses]
            return await open_all(pages)
        case {"echo": times}:
            return await echo(pages, times)
        case {"storm": count, "seconds": seconds}:
            return await storm(pages[:count], seconds)
    raise ValueError(order)


async def main() -> None:
    pages: list[Page] = []
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(
                orjson.dumps(await obey(pages, orjson.loads(line), session)).decode(),
                flush=True,
            )


if __name__ == "__main__":
    asyncio.run(main())
