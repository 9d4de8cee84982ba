"""The least a chat server can do: pass a model's tokens on to a socket, and keep nothing."""

import os
import sys

import orjson
from aiohttp import ClientSession, TCPConnector, web

END = "[the end]"
MODEL, URL = os.environ.get("RELAY_MODEL", ""), os.environ.get("RELAY_URL", "")


async def relay(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    async for message in socket:
        await _answer(request.app[UPSTREAM], orjson.loads(message.data)["text"], socket)
    return socket


async def _answer(upstream: ClientSession, text: str, socket: web.WebSocketResponse) -> None:
    messages = [{"role": "user", "content": text}]
    body = orjson.dumps({"model": MODEL, "messages": messages, "stream": True})
    rest = b""
    async with upstream.post(f"{URL}/chat/completions", data=body) as response:
        async for piece in response.content.iter_any():
            *events, rest = (rest + piece).split(b"\n\n")
            for event in events:
                if text := _text(event):
                    await socket.send_str(text)
    await socket.send_str(END)


def _text(event: bytes) -> str | None:
    if not event.startswith(b"data: {"):
        return None
    choices = orjson.loads(event[6:])["choices"]
    return choices[0]["delta"].get("content") if choices else None


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
