"""The local database as a server: its REST API, called in this process."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any

import httpx2

from .errors import UNUSABLE, CommandFailed
from .server import TIMEOUT, Server

KEY_NAME = "Command line"
KEY_DAYS = 30
REQUESTS_PER_MINUTE = 100_000


class AppTransport(httpx2.AsyncBaseTransport):
    """Sends requests to an ASGI application, and passes its response on as it is sent."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        is_closed = asyncio.Event()
        incoming = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if incoming:
                return incoming.pop()
            await is_closed.wait()
            return {"type": "http.disconnect"}

        async def respond() -> None:
            try:
                await self.app(_scope(request), receive, messages.put)
            finally:
                messages.put_nowait(None)

        task = asyncio.create_task(respond())
        try:
            start = await messages.get()
        except asyncio.CancelledError:
            is_closed.set()  # the application ends as for any client that leaves
            await asyncio.wait([task])
            raise
        if start is None:
            await task  # raises what went wrong
            raise httpx2.RemoteProtocolError("The application didn't answer.")
        return httpx2.Response(
            start["status"],
            headers=start.get("headers", []),
            stream=_Body(messages, is_closed, task),
        )


class _Body(httpx2.AsyncByteStream):
    def __init__(
        self,
        messages: "asyncio.Queue[dict[str, Any] | None]",
        is_closed: asyncio.Event,
        task: "asyncio.Task[None]",
    ) -> None:
        self.messages = messages
        self.is_closed = is_closed
        self.task = task

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self.messages.get()) is not None:
            yield message.get("body", b"")
            if not message.get("more_body", False):
                return

    async def aclose(self) -> None:
        self.is_closed.set()
        await self.task


def _scope(request: httpx2.Request) -> dict[str, Any]:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "server": (url.host, url.port),
        "client": ("127.0.0.1", 0),
        "root_path": "",
    }


@asynccontextmanager
async def connect(user_name: str) -> AsyncIterator[Server]:
    """Act as a user of the local database, with a key that ends with this command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    application = import_module("project.asgi").application  # sets Django up
    from django.conf import settings
    from django.db import DatabaseError

    from agents import runs
    from agents.db import database
    from project import commands

    try:
        key, token = await database.run(_create_key, user_name)
    except DatabaseError as error:
        if (message := commands.error_message(error)) is None:
            raise
        raise CommandFailed(message) from error
    url = settings.ORIGINS[0]
    try:
        async with httpx2.AsyncClient(
            base_url=url,
            transport=AppTransport(application),
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT,
        ) as client:
            yield Server(url, client)
    finally:
        await runs.shut_down(hand_over=False)
        await database.run(key.delete)


def _create_key(user_name: str) -> tuple[Any, str]:
    from django.contrib.auth import get_user_model
    from django.utils import timezone

    from agents.access import api_keys
    from agents.models import ApiKey

    users = get_user_model().objects.filter(is_active=True)
    if user_name:
        user = users.filter(username=user_name).first()
    else:
        user = users.filter(is_superuser=True).order_by("pk").first()
    if user is None:
        reason = f"There is no user named {user_name!r}." if user_name else "There is no user."
        raise CommandFailed(f"{reason} Choose one with --user.", UNUSABLE)
    return api_keys.create(
        user,
        KEY_NAME,
        ApiKey.Scope.values,
        expires_at=timezone.now() + timedelta(days=KEY_DAYS),
        requests_per_minute=REQUESTS_PER_MINUTE,
    )
