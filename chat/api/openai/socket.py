"""The WebSocket of responses: several on one connection, one after the other."""

import asyncio
import json
import math
import time
from collections import OrderedDict
from contextlib import aclosing, suppress
from typing import Any
from uuid import uuid4

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import gettext as _

from agents.access import api_keys
from agents.access.requests import Receive, Scope, Send
from agents.db import database
from agents.models import ApiKey
from agents.web.api_access import bucket_of
from agents.web.api_errors import ApiError
from agents.web.consumers.connections import TooManySockets, track_socket

from ..calls import Caller
from . import responses, schemas
from .completions import stop_unread
from .response_schemas import ResponseRequest

MAX_SECONDS = 3_600.0
MAX_WAITING = 8  # requests that arrive while one is answered
MAX_REMEMBERED = 20
CREATE = "response.create"
NOT_FOR_SOCKETS = ("stream", "stream_options", "background")


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one connection of a program with a key; pages of other sites send an Origin."""
    headers = dict(scope["headers"])
    authorization = headers.get(b"authorization", b"").decode("latin-1")
    key = await database.run(api_keys.find, authorization)
    is_program = key is not None and ApiKey.Scope.ASK in key.scopes
    if key is None or not is_program or b"origin" in headers:
        await send({"type": "websocket.close"})
        return
    accepted = headers.get(b"accept-language", b"").decode("latin-1")
    with translation.override(_language(accepted)), suppress(TooManySockets):
        connection = Connection(Caller(key), receive, send)
        with track_socket(key.user_id, f"v1-{uuid4().hex}", connection.leave):
            await send({"type": "websocket.accept"})
            await connection.run()
            return
    await send({"type": "websocket.close"})


class Connection:
    """One connection: its requests, and the responses that only it can continue."""

    def __init__(self, caller: Caller, receive: Receive, send: Send) -> None:
        self.caller = caller
        self._receive = receive
        self._send = send
        self._requests: asyncio.Queue[str | None] = asyncio.Queue(MAX_WAITING)
        self._remembered: OrderedDict[str, None] = OrderedDict()
        self._left = asyncio.Event()

    def leave(self) -> None:
        """End the connection soon."""
        self._left.set()

    async def run(self) -> None:
        """Answer requests until the program leaves, or its time is over."""
        end = time.monotonic() + MAX_SECONDS
        reader = asyncio.create_task(self._read())
        try:
            while not self._left.is_set():
                try:
                    async with asyncio.timeout(end - time.monotonic()):
                        text = await self._requests.get()
                except TimeoutError:
                    sentence = _("This connection is an hour old. Open a new one.")
                    code = "websocket_connection_limit_reached"
                    await self._send_error(ApiError(400, sentence, code))
                    break
                if text is None:
                    return
                await self._answer(text)
            with suppress(Exception):  # the other side may have left
                await self._send({"type": "websocket.close", "code": 1000})
        finally:
            reader.cancel()
            await asyncio.wait([reader])

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._left.set()
                break
            if message["type"] != "websocket.receive":
                continue
            try:
                self._requests.put_nowait(message.get("text") or "")
            except asyncio.QueueFull:
                self._left.set()
                break
        with suppress(asyncio.QueueFull):
            self._requests.put_nowait(None)

    async def _answer(self, text: str) -> None:
        previous = None
        try:
            bucket = bucket_of(self.caller.key)
            key = await database.run(api_keys.reread, self.caller.key)
            if key is None:
                self._left.set()
                sentence = _("This API key can no longer be used.")
                raise ApiError(401, sentence, "invalid_api_key")
            self.caller = Caller(key)  # with what its user may do now
            if not bucket.allows():
                seconds = math.ceil(bucket.seconds_until_free())
                sentence = _("Too many requests. Try again in %(seconds)d s.")
                raise ApiError(429, sentence % {"seconds": seconds}, "rate_limit_exceeded")
            body = _parse(text)
            previous = body.previous_response_id
            started = await responses.start(self.caller, body, self._remembered.keys())
        except ApiError as error:
            if previous is not None:
                self._remembered.pop(previous, None)
            await self._send_error(error)
        except PermissionDenied as error:
            await self._send_error(ApiError(403, str(error), "permission_denied"))
        else:
            await self._stream(started)

    async def _stream(self, started: responses.StartedResponse) -> None:
        writer = started.writer(self.caller)
        stream = responses.events(self.caller, writer, has_error_event=False)
        is_read = False
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    if self._left.is_set():
                        return
                    if event is not None:
                        await self._send_json(event)
            is_read = True
        finally:
            if not is_read:
                await stop_unread(self.caller, started.run)
        id = writer.resource()["id"]
        if writer.status == "failed":
            self._remembered.pop(started.echo["previous_response_id"] or "", None)
            return
        self._remembered[id] = None
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)

    async def _send_error(self, error: ApiError) -> None:
        payload = {
            "type": "invalid_request_error" if error.status < 500 else "server_error",
            "code": error.code,
            "message": str(error),
            "param": error.fields.get("param"),
        }
        await self._send_json({"type": "error", "status": error.status, "error": payload})

    async def _send_json(self, value: dict[str, Any]) -> None:
        text = json.dumps(value, ensure_ascii=False)
        await self._send({"type": "websocket.send", "text": text})


def _language(accepted: str) -> str:
    """Return the language of errors, as for other requests."""
    request = HttpRequest()
    request.META["HTTP_ACCEPT_LANGUAGE"] = accepted
    return translation.get_language_from_request(request)


def _parse(text: str) -> ResponseRequest:
    """Return the request in a message. Raises ApiError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.get("type") != CREATE:
        sentence = _("Send a JSON object with the type “%(type)s”.") % {"type": CREATE}
        raise ApiError(400, sentence, "invalid_request", param="type")
    if unfit := [name for name in NOT_FOR_SOCKETS if name in value]:
        sentence = _("Don’t send %(name)s on a WebSocket.") % {"name": unfit[0]}
        raise ApiError(400, sentence, "invalid_request", param=unfit[0])
    return schemas.parse(text, ResponseRequest)
