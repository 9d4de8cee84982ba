"""The cost of a message and a page with much data, which should stay the same."""

import asyncio
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import orjson
from aiohttp import ClientSession

from tests.bench.processes import cpu
from tests.bench.product import Product, output, product
from tests.bench.rounds import Size

TIMES = 4
TRIES = 3
TIMEOUT_SECONDS = 60
ENDED = 'class="run" data-status="completed"'
ABOUT = """\
Growth: what one message, and one page, costs the server when a session holds so many messages,
and when there are so many sessions, a tenth of them this person's. CPU is in milliseconds, that
of a message from the question to the end of its run; × is the ratio to the first line of its
kind."""
PAGES = {
    "chat": "/chat/{chat}/",
    "list": "/chat/sessions/",
    "search": "/chat/sessions/?q=nowhere",
    "traces": "/traces/",
}


def measure(size: Size) -> list[dict]:
    env = {"ASHIATO_DEMO_DELAY": "0"}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-"))
        server = stack.enter_context(product(Path(folder), 1, 1, env))
        messages = list(_grown(server, "messages", size.messages))
        return messages + list(_grown(server, "sessions", size.sessions))


def _grown(server: Product, kind: str, levels: tuple[int, ...]) -> Iterator[dict]:
    first: dict[str, float] = {}
    for level in levels:
        place = output("tests.bench.filled", kind, level, env=server.env)
        figures = _costs(server, place)
        first = first or figures
        ratios = {f"{name} ×": figures[name] / first[name] for name in ("message", "chat")}
        row = {name: round(value, 2) for name, value in (figures | ratios).items()}
        yield {"with": kind, "so many": level} | row


def _costs(server: Product, place: dict) -> dict[str, float]:
    message = _cost(server, lambda times: asyncio.run(_ask(server, place, times)))
    pages = {
        name: _cost(server, lambda times, path=path: _look(server, place, path, times))
        for name, path in PAGES.items()
    }
    return {"message": message, **pages}


def _cost(server: Product, use: Callable[[int], None]) -> float:
    """Return milliseconds of CPU per use; the minimum of a few, to exclude other load."""
    use(1)
    return min(_spent(server, use) for _ in range(TRIES)) * 1000 / TIMES


def _spent(server: Product, use: Callable[[int], None]) -> float:
    before = cpu(server.process)
    use(TIMES)
    return cpu(server.process) - before


async def _ask(server: Product, place: dict, times: int) -> None:
    """Ask questions one after the other on an open page."""
    url = f"ws://{server.origin}/ws/chat/{place['chat']}/?after={place['last']}"
    headers = {"Origin": f"http://{server.origin}", "Cookie": place["cookie"]}
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        ClientSession() as session,
        session.ws_connect(url, headers=headers, compress=0) as socket,
    ):
        for _ in range(times):
            frame = {"type": "message", "text": "6 * 7", "client_id": uuid4().hex}
            await socket.send_str(orjson.dumps(frame).decode())
            while ENDED not in await socket.receive_str():
                pass


def _look(server: Product, place: dict, path: str, times: int) -> None:
    url = f"http://{server.origin}{path.format(**place)}"
    for _ in range(times):
        request = urllib.request.Request(url, headers={"Cookie": place["cookie"]})
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as page:
            page.read()
