"""One page on one chat, for each compared server's protocol."""

import asyncio
import time
from typing import ClassVar
from uuid import uuid4

import orjson
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from tests.bench.fake_llm import now, stamps

SETTLED = 0.5


class Tab:
    """Our own page, or a socket relay's: a frame with the question, frames with text."""

    def __init__(self, session: ClientSession, page: dict, order: dict) -> None:
        self.session, self.page, self.order = session, page, order
        self.asked = 0
        self.first_word: float | None = None
        self.seen: set[int] = set()
        self.delays: list[float] = []
        self.is_over = False

    async def open(self) -> None:
        headers = {"Origin": self.page["origin"], "Cookie": self.page["cookie"]}
        self.socket: ClientWebSocketResponse = await self.session.ws_connect(
            self.page["url"], headers=headers, compress=0
        )

    async def ask(self, wait: float) -> None:
        await asyncio.sleep(wait)
        self.asked = now()
        await self.send_question()
        async for message in self.socket:
            if message.type is WSMsgType.TEXT and await self.read(message.data, now()):
                return

    async def send_question(self) -> None:
        frame = {"type": "message", "text": "Hello", "client_id": uuid4().hex}
        await self.socket.send_str(orjson.dumps(frame).decode())

    async def read(self, text: str, at: int) -> bool:
        """Record new tokens; a page may receive the same one many times."""
        # Older ones are in titles that the model wrote for other chats.
        fresh = {stamp for stamp in stamps(text) if stamp >= self.asked} - self.seen
        if fresh:
            self.seen |= fresh
            self.delays += [(at - stamp) / 1000 for stamp in fresh]
            self.first_word = self.first_word or (at - self.asked) / 1000
        self.is_over = self.has_ended(text)
        return self.is_over

    def has_ended(self, text: str) -> bool:
        return self.order["end"] in text


class EventsTab(Tab):
    """A page that posts its question and reads events: the bare relay."""

    async def open(self) -> None:
        """Do nothing: the connection is opened with the question."""

    async def ask(self, wait: float) -> None:
        await asyncio.sleep(wait)
        self.asked = now()
        async with self.session.post(self.page["url"], json={"text": "Hello"}) as answer:
            async for words in answer.content.iter_any():
                if await self.read(words.decode(), now()):
                    return


class ProgramTab(EventsTab):
    """A program with a key: a streamed chat completion."""

    async def ask(self, wait: float) -> None:
        await asyncio.sleep(wait)
        self.asked = now()
        question = {"role": "user", "content": "Hello"}
        body = {"model": "helper", "stream": True, "messages": [question]}
        headers = {"Authorization": f"Bearer {self.page['key']}"}
        url = self.page["url"]
        async with self.session.post(url, json=body, headers=headers) as answer:
            async for line in answer.content:
                if await self.read(line.decode(), now()):
                    return


class SocketIOTab(Tab):
    """A page that uses socket.io; its answer has ended when every token is there."""

    words: ClassVar[tuple[str, ...]]

    async def open(self) -> None:
        await super().open()
        await self._until("0")
        await self.socket.send_str(f"40{orjson.dumps(self.introduction()).decode()}")
        connected = await self._until("40")
        self.sid = orjson.loads(connected[2:])["sid"]
        await self.connected()
        await asyncio.sleep(SETTLED)

    def introduction(self) -> dict:
        raise NotImplementedError

    async def connected(self) -> None:
        raise NotImplementedError

    async def emit(self, event: str, *data: dict) -> None:
        await self.socket.send_str(f"42{orjson.dumps([event, *data]).decode()}")

    async def read(self, text: str, at: int) -> bool:
        if text == "2":
            await self.socket.send_str("3")
        is_word = any(word in text for word in self.words)
        return await super().read(text, at) if is_word else False

    def has_ended(self, text: str) -> bool:
        return len(self.seen) >= self.order["tokens"]

    async def _until(self, kind: str) -> str:
        while not (text := await self.socket.receive_str(timeout=60)).startswith(kind):
            pass
        return text


class ChainlitTab(SocketIOTab):
    words = ('42["stream_',)

    def introduction(self) -> dict:
        me = {"sessionId": uuid4().hex, "clientType": "webapp", "userEnv": "{}"}
        return {**me, "chatProfile": "", "threadId": ""}

    async def connected(self) -> None:
        await self.emit("connection_successful")

    async def send_question(self) -> None:
        message = {"id": uuid4().hex, "threadId": "", "name": "user", "type": "user_message"}
        message |= {"output": "Hello", "createdAt": "2026-01-01T00:00:00Z"}
        await self.emit("client_message", {"message": message, "fileReferences": []})


class OpenWebUITab(SocketIOTab):
    words = ('"chat:completion"', '"response:completion"')

    def introduction(self) -> dict:
        return {"token": self.page["token"]}

    async def connected(self) -> None:
        await self.emit("user-join", {"auth": self.introduction()})

    async def send_question(self) -> None:
        """Post the question as its own page does; the text comes over the socket."""
        url = f"{self.page['origin']}/api/chat/completions"
        headers = {"Authorization": f"Bearer {self.page['token']}"}
        self._posting = asyncio.create_task(
            self.session.post(url, json=self._question(), headers=headers)
        )

    def _question(self) -> dict:
        mine, answer, model = str(uuid4()), str(uuid4()), self.page["model"]
        said = {"role": "user", "content": "Hello"}
        message = {"id": mine, "parentId": None, "childrenIds": [answer], "models": [model]}
        return {
            "stream": True,
            "model": model,
            "messages": [said],
            "session_id": self.sid,
            "chat_id": "",
            "id": answer,
            "parent_id": None,
            "user_message": message | said | {"timestamp": int(time.time())},
            "params": {},
            "features": {},
            "variables": {},
            "background_tasks": {},
            "tool_servers": [],
        }


KINDS: dict[str, type[Tab]] = {
    "page": Tab,
    "events": EventsTab,
    "v1": ProgramTab,
    "chainlit": ChainlitTab,
    "open-webui": OpenWebUITab,
}
