"""A browser tab: saves every frame, reconnects, and sends again."""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

import aiohttp

from tests.faults import page
from tests.faults.history import Sent
from tests.faults.page import Node

COMES_BACK = 0.15
RELOADS = 10
GONE = (aiohttp.ClientError, OSError, asyncio.TimeoutError)
CSRF = "f" * 32
MESSAGE = re.compile(r'id="message-(\d+)"')


class Unseen(Exception):
    """Raised when something didn't appear on the page in time."""


@dataclass(slots=True)
class Said:
    text: str
    client_id: str
    agent: str = ""
    is_acknowledged: bool = False


class Tab:
    """One page on one chat, acting like the page's own script."""

    def __init__(
        self, client: aiohttp.ClientSession, url: str, person: dict, chat: int, name: str = ""
    ) -> None:
        self.client = client
        self.url = url
        self.chat = chat
        self.name = name or f"chat {chat}"
        self.frames: list[tuple[float, str]] = []
        self.said: list[Said] = []
        self.page = Node()
        self.socket: aiohttp.ClientWebSocketResponse | None = None
        self.sockets = 0  # number of connections
        self.headers = {
            "Cookie": f"{person['cookie']}; csrftoken={CSRF}",
            "X-CSRFToken": CSRF,
            "Origin": url,
        }
        self._staying: asyncio.Task[None] | None = None

    async def open(self) -> "Tab":
        for _ in range(RELOADS):
            with suppress(*GONE):
                self.page = await self.loaded()
                break
            await asyncio.sleep(1)
        self._staying = asyncio.create_task(self._stay())
        await self.until(lambda: self.socket is not None)
        return self

    async def close(self) -> None:
        if self._staying is not None:
            self._staying.cancel()
            await asyncio.wait([self._staying])
            self._staying = self.socket = None

    async def away(self, seconds: float) -> None:
        """Disconnect for a while; then the same page reconnects."""
        await self.close()
        await asyncio.sleep(seconds)
        self._staying = asyncio.create_task(self._stay())
        await self.until(lambda: self.socket is not None)

    async def loaded(self) -> Node:
        """Load the page again."""
        async with self.client.get(
            f"{self.url}/chat/{self.chat}/", headers=self.headers
        ) as got:
            got.raise_for_status()
            return page.read(await got.text())

    async def say(self, text: str, agent: str = "") -> Said:
        """Send a message, now or once reconnected; don't wait for a response."""
        said = Said(text, uuid4().hex, agent)
        self.said.append(said)
        await self.send_message(said)
        return said

    async def ask(self, text: str, agent: str = "", seconds: float = 20) -> Said:
        """Send a message, and wait for its acknowledgement."""
        said = await self.say(text, agent)
        await self.until(lambda: said.is_acknowledged, seconds)
        return said

    async def send_again(self) -> None:
        """Send unacknowledged messages again."""
        for said in self.said:
            if not said.is_acknowledged:
                await self.send_message(said)

    async def try_again(self) -> None:
        """Send again after a rejection, as users do."""
        notice = self.page.find("notice")
        if notice is not None and notice.text:
            notice.children.clear()
            await self.send_again()

    async def stop(self) -> None:
        run = self.page.find("composer-state").attributes["data-live-run"]
        await self.send({"type": "stop", "run": run})

    async def decide(self, approval: Node, *, is_approved: bool, text: str = "") -> int:
        """Send a decision, with this text in the fields that a tool's form requires."""
        pk = approval.attributes["id"].removeprefix("approval-")
        digests = [n for n in _inputs(approval) if n.get("name") == f"digest-{pk}"]
        form = {
            "verdict": "approve" if is_approved else "reject",
            f"digest-{pk}": digests[0]["value"],
        }
        form |= {n["name"]: text for n in _inputs(approval) if "aria-required" in n}
        headers = self.headers | {"HX-Request": "true"}
        where = f"{self.url}/approvals/{pk}/"
        options = {"data": form, "headers": headers, "allow_redirects": False}
        async with self.client.post(where, **options) as got:
            return got.status

    async def send(self, frame: dict) -> None:
        if self.socket is not None:
            with suppress(*GONE):
                await self.socket.send_json(frame)

    async def until(self, is_so: Callable[[], object], seconds: float = 15) -> None:
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                raise Unseen(
                    f"{self.name}: not within {seconds} s; it shows {self.text[-400:]!r}"
                )
            await asyncio.sleep(0.02)

    async def until_over(self, seconds: float = 20) -> None:
        await self.until(lambda: self.runs and not self.is_live, seconds)

    @property
    def text(self) -> str:
        return self.page.text

    @property
    def messages(self) -> Node:
        return self.page.find("messages") or Node()

    @property
    def runs(self) -> list[Node]:
        return self.messages.all("run")

    @property
    def is_live(self) -> bool:
        return any(run.attributes["data-status"] in {"running", "waiting"} for run in self.runs)

    @property
    def questions(self) -> list[Node]:
        """The decisions the page asks for."""
        asked = self.messages.all("approval")
        return [node for node in asked if node.attributes["data-verdict"] == "waiting"]

    @property
    def sent(self) -> list[Sent]:
        return [
            Sent(
                chat=self.chat,
                client_id=said.client_id,
                text=said.text,
                is_acknowledged=said.is_acknowledged,
            )
            for said in self.said
        ]

    async def _stay(self) -> None:
        while True:
            with suppress(*GONE):
                await self._connected()
            self.socket = None
            await asyncio.sleep(COMES_BACK)

    async def _connected(self) -> None:
        last = max([int(pk) for pk in MESSAGE.findall(_ids(self.messages))], default=0)
        where = f"{self.url.replace('http', 'ws')}/ws/chat/{self.chat}/?after={last}"
        async with self.client.ws_connect(
            where, headers=self.headers, max_msg_size=0
        ) as socket:
            self.socket = socket
            self.sockets += 1
            await self.send_again()
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._take(message.data)

    async def send_message(self, said: Said) -> None:
        frame = {"type": "message", "text": said.text, "client_id": said.client_id}
        await self.send(frame | {"agent": said.agent})

    def _take(self, frame: str) -> None:
        self.frames.append((time.monotonic(), frame))
        page.take(self.page, frame)
        for said in self.said:
            if f'"{said.client_id}"' in frame:
                said.is_acknowledged = True


def _inputs(node: Node) -> list[dict[str, str]]:
    own = [node.attributes] if node.tag == "input" else []
    return own + [found for child in node.nodes for found in _inputs(child)]


def _ids(messages: Node) -> str:
    return " ".join(f'id="{node.attributes.get("id", "")}"' for node in messages.nodes)
