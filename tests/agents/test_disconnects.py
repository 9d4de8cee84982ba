"""Clients that leave before their response."""

import asyncio
import gc
from io import BytesIO

from project.asgi import QuietHandler


async def test_a_client_that_leaves_while_the_server_cancels_leaves_no_traceback(monkeypatch):
    """Daphne cancels the request, and asyncio reports exceptions that were never read."""
    reported = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: reported.append(context))
    has_left, is_answering = asyncio.Event(), asyncio.Event()

    async def read_body(receive):
        return BytesIO()

    async def receive():
        await has_left.wait()
        return {"type": "http.disconnect"}

    async def respond(request):
        is_answering.set()
        await has_left.wait()
        raise asyncio.CancelledError

    async def send(message):
        raise AssertionError(message)

    handler = QuietHandler()
    monkeypatch.setattr(handler, "read_body", read_body)
    monkeypatch.setattr(handler, "run_get_response", respond)
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    request = asyncio.create_task(handler.handle(scope, receive, send))
    await is_answering.wait()
    request.cancel()
    has_left.set()
    await asyncio.gather(request, return_exceptions=True)
    await asyncio.sleep(0.01)
    del request  # its traceback keeps the tasks of the handler
    gc.collect()

    assert reported == []
