"""A model's text, requested as cheaply as Python can."""

import os
from collections.abc import AsyncIterator

import orjson
from aiohttp import ClientSession

MODEL, URL = os.environ.get("RELAY_MODEL", ""), os.environ.get("RELAY_URL", "")


async def words(session: ClientSession, text: str) -> AsyncIterator[str]:
    messages = [{"role": "user", "content": text}]
    body = orjson.dumps({"model": MODEL, "messages": messages, "stream": True})
    rest = b""
    async with session.post(f"{URL}/chat/completions", data=body) as response:
        async for piece in response.content.iter_any():
            *events, rest = (rest + piece).split(b"\n\n")
            for event in events:
                if said := _delta_text(event):
                    yield said


def _delta_text(event: bytes) -> str | None:
    if not event.startswith(b"data: {"):
        return None
    choices = orjson.loads(event[6:])["choices"]
    return choices[0]["delta"].get("content") if choices else None
