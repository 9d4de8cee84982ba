"""The minimum over a WebSocket, by the leanest server available."""

import sys

import orjson
from aiohttp import ClientSession, TCPConnector, web

from tests.bench.relay import END
from tests.bench.upstream import words


async def relay(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    async for message in socket:
        async for said in words(request.app[UPSTREAM], orjson.loads(message.data)["text"]):
            await socket.send_str(said)
        await socket.send_str(END)
    return socket


UPSTREAM = web.AppKey("upstream", ClientSession)


async def _upstream(app: web.Application):
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        app[UPSTREAM] = session
        yield


def application() -> web.Application:
    app = web.Application()
    app.cleanup_ctx.append(_upstream)
    app.router.add_get("/ws/{chat}/", relay)
    return app


if __name__ == "__main__":
    port = int(sys.argv[1])
    web.run_app(application(), host="127.0.0.1", port=port, print=None, access_log=None)
