"""The REST API of a server, as the commands use it."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

import httpx2

from agents.management.run_printer import Reply, WireEvent
from agents.management.run_printer import Request as Prompt

from . import profiles
from .errors import FAILED, UNUSABLE, CommandFailed, ServerError
from .profiles import SignIn

API = "/api/v1"
# Answers take as long as they take: an open stream is never silent for this long.
TIMEOUT = httpx2.Timeout(30, read=90)
MAX_RECONNECTS = 5
MAX_EVENT_BYTES = 64 * 1024 * 1024  # an event has all that a tool returned
PAGE_SIZE = 100
MAX_DETAIL_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Something that a run waits for, as `listApprovals` returns it."""

    values: Mapping[str, Any]

    @property
    def id(self) -> int:
        return int(self.values["id"])

    @property
    def step(self) -> int:
        return int(self.values["step"])

    @property
    def tool(self) -> str:
        return str(self.values["tool"])

    @property
    def arguments(self) -> str:
        return json.dumps(self.values["arguments"], ensure_ascii=False)

    @property
    def why(self) -> str:
        return str(self.values["why"])

    @property
    def explanation(self) -> str:
        return str(self.values["why_text"])

    @property
    def question(self) -> str:
        """What is asked, if it is a question."""
        arguments = self.values["arguments"]
        question = arguments.get("question") if isinstance(arguments, dict) else None
        return str(question or self.explanation)

    @property
    def prompt(self) -> Prompt:
        return Prompt(
            agent=self.values["agent"],
            tool=self.tool,
            arguments=self.arguments,
            why=self.why,
            explanation=self.explanation,
        )


class TokenAuth(httpx2.Auth):
    """Sends the token of a sign-in, and renews it when it has expired."""

    def __init__(self, url: str, sign_in: SignIn) -> None:
        self.url = url
        self.sign_in = sign_in
        self._lock = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        sent = self.sign_in.token
        self._authorize(request)
        response = yield request
        if response.status_code != httpx2.codes.UNAUTHORIZED or not self.sign_in.refresh_token:
            return
        async with self._lock:
            # Another request or command may have renewed it meanwhile.
            if self.sign_in.token == sent and not self._use_saved():
                renewed = yield self._renewal()
                await renewed.aread()
                if renewed.status_code != httpx2.codes.OK:
                    sentence = "Your sign-in to {url} has ended. Run “ashiato login {url}”."
                    raise CommandFailed(sentence.format(url=self.url), UNUSABLE)
                self.sign_in = sign_in_of(renewed.json(), self.sign_in)
                profiles.renew(self.url, self.sign_in)
        self._authorize(request)
        yield request

    def _authorize(self, request: httpx2.Request) -> None:
        request.headers["Authorization"] = f"Bearer {self.sign_in.token}"

    def _use_saved(self) -> bool:
        """Use the saved token if it is another one."""
        saved = profiles.load().servers.get(self.url)
        if saved is None or saved.token == self.sign_in.token:
            return False
        self.sign_in = saved
        return True

    def _renewal(self) -> httpx2.Request:
        fields = {
            "grant_type": "refresh_token",
            "refresh_token": self.sign_in.refresh_token,
            "client_id": self.sign_in.client_id,
        }
        return httpx2.Request(
            "POST",
            self.sign_in.token_endpoint,
            data=fields,
            extensions={"timeout": TIMEOUT.as_dict()},
        )


def sign_in_of(response: Mapping[str, Any], earlier: SignIn) -> SignIn:
    """Return the sign-in that a token response has."""
    return earlier.model_copy(
        update={
            "token": response["access_token"],
            "refresh_token": response.get("refresh_token") or earlier.refresh_token,
        }
    )


class Server:
    """A server to which we are signed in."""

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self.url = url
        self.client = client

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, sign_in: SignIn) -> AsyncIterator[Self]:
        auth = TokenAuth(url, sign_in)
        async with httpx2.AsyncClient(base_url=url, auth=auth, timeout=TIMEOUT) as client:
            yield cls(url, client)

    async def me(self) -> dict[str, Any]:
        """Return whose key it is, and what it may do."""
        details: dict[str, Any] = await self._json("GET", "/me")
        return details

    # Agents, chats and runs

    async def agents(self) -> list[dict[str, Any]]:
        return [agent async for agent in self._items("/agents")]

    async def send(self, text: str, agent: str, chat: int | None) -> tuple[int, int]:
        """Send a message; return its chat and its run."""
        headers = {"Idempotency-Key": uuid4().hex}
        body = {"text": text, "agent": agent}
        if chat is None:
            started = await self._json("POST", "/chats", json=body, headers=headers)
            message = started["message"]
        else:
            path = f"/chats/{chat}/messages"
            message = await self._json("POST", path, json=body, headers=headers)
        return message["chat"], message["run"]["id"]

    async def chats(self, limit: int) -> list[dict[str, Any]]:
        return await self._first(limit, "/chats")

    async def messages(self, chat: int) -> list[dict[str, Any]]:
        return [message async for message in self._items(f"/chats/{chat}/messages")]

    async def run(self, run: int) -> dict[str, Any]:
        details: dict[str, Any] = await self._json("GET", f"/runs/{run}")
        return details

    async def runs(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return the newest runs that match the filter."""
        return await self._first(limit, "/runs", filter=query)

    async def steps(self, run: int) -> list[dict[str, Any]]:
        return [step async for step in self._items(f"/runs/{run}/steps")]

    async def stop(self, run: int) -> None:
        await self._request("POST", f"/runs/{run}/stop")

    async def events(self, run: int, after: int = 0) -> AsyncGenerator[WireEvent, None]:
        """Yield a run's events after this number; a lost connection is opened again."""
        failures = 0
        while True:
            try:
                async for event in self._stream(f"/runs/{run}/events", after):
                    failures = 0
                    after = event["seq"]
                    yield event
                    if event["type"] == "run_finished":
                        return
                return
            except httpx2.TransportError as error:
                failures += 1
                if failures > MAX_RECONNECTS:
                    raise self._unreachable(error) from error
                await asyncio.sleep(2**failures / 4)

    async def _stream(self, path: str, after: int) -> AsyncIterator[WireEvent]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        async with self.client.stream("GET", API + path, headers=headers) as response:
            await _check(response)
            async for message in httpx2.EventSource(response, MAX_EVENT_BYTES):
                if message.data:
                    yield json.loads(message.data)

    async def trace(self, run: int, ending: str) -> str:
        """Return a run as a document: `json` or `md`."""
        response = await self._request("GET", f"/runs/{run}/trace.{ending}")
        return response.text

    # Approvals

    async def approvals(self, run: int) -> list[Approval]:
        """Return what the run waits for, oldest first."""
        items = [item async for item in self._items("/approvals") if item.get("run") == run]
        return [Approval(values=item) for item in reversed(items)]

    async def decide(self, approval: Approval, reply: Reply) -> None:
        body = {
            "verdict": "approve" if reply.is_approved else "reject",
            "digest": approval.values.get("digest", ""),
        }
        if reply.text:
            body["answer"] = reply.text
        await self._json("POST", f"/approvals/{approval.id}/decision", json=body)

    # Documents

    async def collections(self) -> list[dict[str, Any]]:
        """Return the collections to which we can add documents."""
        items = [item async for item in self._items("/collections")]
        return [item for item in items if item["may_edit"]]

    async def upload(self, collection: int, name: str, content: bytes) -> dict[str, Any]:
        path = f"/collections/{collection}/documents"
        document: dict[str, Any] = await self._json(
            "POST", path, files={"file": (name, content)}
        )
        return document

    async def document(self, document: int) -> dict[str, Any]:
        details: dict[str, Any] = await self._json("GET", f"/documents/{document}")
        return details

    # Examples

    async def example_sets(self) -> list[dict[str, Any]]:
        return [item async for item in self._items("/example-sets")]

    async def start_experiment(self, example_set: int, agent: str) -> dict[str, Any]:
        body = {"example_set": example_set, "agent": agent}
        experiment: dict[str, Any] = await self._json("POST", "/experiments", json=body)
        return experiment

    async def experiment(self, experiment: int) -> dict[str, Any]:
        details: dict[str, Any] = await self._json("GET", f"/experiments/{experiment}")
        return details

    async def results(self, experiment: int) -> list[dict[str, Any]]:
        return [item async for item in self._items(f"/experiments/{experiment}/results")]

    # Requests

    async def _items(
        self, path: str, **parameters: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the items of all pages."""
        cursor = None
        while True:
            values = {"limit": PAGE_SIZE, "cursor": cursor, **parameters}
            page = await self._json(
                "GET", path, params={name: each for name, each in values.items() if each}
            )
            for item in page["items"]:
                yield item
            if (cursor := page.get("next_cursor")) is None:
                return

    async def _first(self, limit: int, path: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return at most this many items of a list."""
        found: list[dict[str, Any]] = []
        async with aclosing(self._items(path, **parameters)) as items:
            async for item in items:
                if len(found) == limit:
                    break
                found.append(item)
        return found

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        response = await self._request(method, path, **options)
        return response.json() if response.content else None

    async def _request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        try:
            response = await self.client.request(method, API + path, **options)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        await _check(response)
        return response

    def _unreachable(self, error: Exception) -> CommandFailed:
        return CommandFailed(f"Can't reach {self.url}: {error or type(error).__name__}.")


async def _check(response: httpx2.Response) -> None:
    """Raise ServerError if the server has refused; its sentence says why."""
    if response.is_success:
        return
    await response.aread()
    detail = ""
    if "json" in response.headers.get("Content-Type", ""):
        detail = str(response.json().get("detail") or "")
    elif not response.is_redirect:
        detail = response.text[:MAX_DETAIL_CHARS]
    phrase = f"{response.status_code} {response.reason_phrase}"
    code = UNUSABLE if response.status_code == httpx2.codes.UNAUTHORIZED else FAILED
    raise ServerError(detail or f"The server answered {phrase}.", response.status_code, code)
