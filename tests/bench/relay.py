"""The minimum of a chat server: passes a model's tokens on as events, and saves nothing."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from aiohttp import ClientSession, TCPConnector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.bench.upstream import words

END = "[the end]"


async def relay(request: Request) -> StreamingResponse:
    text = (await request.json())["text"]
    events = _events(request.app.state.upstream, text)
    return StreamingResponse(events, media_type="text/event-stream")


async def _events(upstream: ClientSession, text: str) -> AsyncIterator[bytes]:
    async for said in words(upstream, text):
        yield b"data: %s\n\n" % said.encode()
    yield b"data: %s\n\n" % END.encode()


@asynccontextmanager
async def _upstream(app: Starlette) -> AsyncIterator[None]:
    async with ClientSession(connector=TCPConnector(limit=0)) as app.state.upstream:
        yield


app = Starlette(routes=[Route("/{chat}", relay, methods=["POST"])], lifespan=_upstream)

if __name__ == "__main__":
    port = int(sys.argv[1])
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", log_level="warning")
