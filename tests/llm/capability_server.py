"""A model server with only the given capabilities."""

import base64
import re
import zlib
from collections.abc import Callable

from agents.llm.discovery.model_probe import COLOURS
from tests.wire import Reply, Request, call, fail, say

CITY = '{"city": "Tokyo", "inhabitants": 14000000}'


def model_with(*parts: str) -> Callable[[Request], Reply]:
    def reply(request: Request) -> Reply:
        part = _part(request)
        if part == "reply":
            return say("Good morning to you.", chunks=4)
        if part not in parts:
            return fail(400, f"This model does not support {part}.")
        return {"tools": _tool_call_reply, "vision": _vision_reply, "schema": _schema_reply}[
            part
        ](request)

    return reply


def _part(request: Request) -> str:
    if "tools" in request.body:
        return "tools"
    if "response_format" in request.body:
        return "schema"
    return "reply" if isinstance(request.body["messages"][-1]["content"], str) else "vision"


def _tool_call_reply(request: Request) -> Reply:
    return call(("multiply", '{"a": 6, "b": 7}'))


def _schema_reply(request: Request) -> Reply:
    return say(CITY)


def _vision_reply(request: Request) -> Reply:
    """Look at the picture: the first pixel of its compressed data."""
    url = request.body["messages"][-1]["content"][-1]["image_url"]["url"]
    png = base64.b64decode(url.partition(",")[2])
    at = re.search(b"IDAT", png).end()
    pixel = tuple(zlib.decompressobj().decompress(png[at:])[1:4])
    return say(next(name for name, colour in COLOURS.items() if colour == pixel))
