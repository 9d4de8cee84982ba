"""A test ground: the product, a model and users; what happens on it becomes a history."""

import asyncio
import os
import socketserver
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Self

import aiohttp

from tests import wire
from tests.faults.history import History, Seen, violations
from tests.faults.model import Model
from tests.faults.product import EMBEDDED, Mode, Product
from tests.faults.tab import GONE, Tab

CONVERGES = 12.0


class NotAvailable(Exception):
    """Raised when a history can't be played on this machine."""


@dataclass(slots=True)
class Result:
    """A row's result: histories, violations, and the slowest recovery."""

    histories: int = 0
    violations: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, other: "Result") -> None:
        self.histories += other.histories
        self.violations += other.violations
        self.slowest = max(self.slowest, other.slowest)


class Testbed:
    """A ground with enough `people` × `chats` for all its histories."""

    def __init__(
        self,
        folder: Path,
        *,
        mode: Mode = EMBEDDED,
        people: int = 5,
        chats: int = 40,
        with_servers: bool = False,
        **environment: str,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.model = Model()
        # Next to the data folder, which no MCP server can access.
        self.notes = folder / "noted" / "notes"
        self.notes.parent.mkdir(exist_ok=True)
        self._options = {"mode": mode, **environment}
        self._size = (people, chats, self.notes if with_servers else "")
        self._stack = ExitStack()
        self.open_tabs: list[Tab] = []
        self._told = 0

    def __enter__(self) -> Self:
        self.wire = self._stack.enter_context(wire.serve_in_thread(self.model))
        rude = self._stack.enter_context(_rude())
        more = {"XAI_API_BASE": f"https://127.0.0.1:{rude}/v1"}
        self.product = Product(self.folder, self.wire.url, **self._options, **more)
        self._stack.callback(self.product.end)
        self.product.start()
        self.people = self.product.set_up(*self._size)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        timeout = aiohttp.ClientTimeout(total=60)
        self.client = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.leave()
        await self.client.close()

    async def leave(self) -> None:
        """Close every tab; the next ones start a new history."""
        await asyncio.gather(*(tab.close() for tab in self.open_tabs))
        self.open_tabs.clear()
        self._told = len(self.wire.requests)

    async def tabs(self, count: int) -> list[Tab]:
        """Open tabs for this many users, each with an unused chat."""
        opened = [self._fresh() for _ in range(count)]
        self.open_tabs += opened
        return list(await asyncio.gather(*(tab.open() for tab in opened)))

    async def tab(self) -> Tab:
        return (await self.tabs(1))[0]

    async def beside(self, tab: Tab) -> Tab:
        """Open a second tab on the same chat."""
        other = Tab(self.client, tab.url, {"cookie": ""}, tab.chat, f"{tab.name}, beside")
        other.headers = tab.headers
        self.open_tabs.append(other)
        return await other.open()

    def _fresh(self) -> Tab:
        person = max(self.people, key=lambda person: len(person["chats"]))
        return Tab(self.client, self.product.url, person, person["chats"].pop())

    async def restart(self, fault: str = "", **options: int) -> None:
        await asyncio.to_thread(self.product.start, fault, **options)

    async def settled(self, seconds: float, *, waits: bool = False) -> float:
        """Wait until every run has ended, or waits if allowed; return how long that took."""
        began = time.monotonic()
        left = list(self.open_tabs)
        for look in count(1):
            # Rarely for tabs with a live run, because loading a page is work for the server
            # too.
            seen = [tab for tab in left if not tab.is_live or tab.questions or look % 8 == 0]
            over = []
            for tab in seen:
                with suppress(*GONE):  # it is about to return
                    over += [tab] if await self._is_settled(tab, waits) else []
            left = [tab for tab in left if tab not in over]
            # What hasn't ended by then is found by the invariants.
            if not left or time.monotonic() - began > seconds:
                return time.monotonic() - began
            await asyncio.sleep(0.2)

    async def _is_settled(self, tab: Tab, waits: bool) -> bool:
        if not all(said.is_acknowledged for said in tab.said):
            await tab.try_again()
            return False
        page = await tab.loaded()
        status = {run.attributes["data-status"] for run in page.all("run")}
        if "waiting" in status and not waits:
            await self._decide(tab)
        if page.all("waiting-turn") and "waiting" not in status:
            return False
        return not status & ({"running"} if waits else {"running", "waiting"})

    async def _decide(self, tab: Tab) -> None:
        """Decide as users do: approve requests, and tell the truth about uncertain calls."""
        for question in tab.questions:
            was_done = any(
                effect.split()[1] in question.text for effect in self.product.effects
            )
            is_unknown = "Did " in question.text
            await tab.decide(question, is_approved=not (is_unknown and was_done))

    async def played(self, seconds: float = 30, *, waits: bool = False) -> Result:
        """Wait for the end, collect everything, and check the invariants."""
        took = await self.settled(seconds, waits=waits)
        seen = [await self._seen(tab) for tab in self.open_tabs]
        history = await asyncio.to_thread(self._history, seen, waits)
        wrong = [f"{took:.1f} s until all was settled"] if took > seconds else []
        chats = {tab.chat for tab in self.open_tabs}
        result = Result(len(chats), wrong + violations(history), took)
        await self.leave()
        return result

    async def _seen(self, tab: Tab) -> Seen:
        end = time.monotonic() + CONVERGES
        live, now = (), None
        while live != now and time.monotonic() < end:
            with suppress(*GONE):  # a page that can't be loaded isn't what the tab displays
                live, now = tab.messages.shape, (await tab.loaded()).find("messages").shape
            await asyncio.sleep(0.1 if live != now else 0)
        return Seen(tab=tab.name, live=live, reloaded=now)

    def _history(self, seen: Sequence[Seen], waits: bool) -> History:
        kept = self.product.dump(sorted({tab.chat for tab in self.open_tabs}))
        sent = [sent for tab in self.open_tabs for sent in tab.sent]
        asked = " ".join(each.text for each in sent)
        told = [r.body["messages"] for r in self.wire.requests[self._told :] if r.body]
        return History(
            sent=sent,
            effects=[e for e in self.product.effects if e.split()[1] in asked],
            seen=seen,
            waits=frozenset(run["pk"] for run in kept["runs"] if waits),
            **kept | {"told": [*told, *kept["told"]]},
        )


class _Rude(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(1)
        self.request.sendall(b"What is TLS?\r\n")


@contextmanager
def _rude() -> Iterator[int]:
    """Open a port without TLS."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Rude) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def resident_mb(pid: int) -> float:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
