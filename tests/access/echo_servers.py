"""A model provider, an MCP server and an endpoint that echo everything they are sent."""

import json
import re
from typing import Any

from tests import wire
from tests.wire import Reply, Request

USE = re.compile(r"use:(\w+)")
ARGUMENTS = {"plain__curse": '{"size": 8}', "database": '{"sql": "SELECT 1"}'}
ECHO = {
    "name": "echo",
    "description": "Says what it was sent.",
    "inputSchema": {"type": "object", "properties": {}},
}


def provider(elsewhere: str):
    """Answer as the question says; `elsewhere` is where it redirects the key."""

    def answer(request: Request) -> Reply:
        messages = request.body["messages"]
        at = max(n for n, message in enumerate(messages) if message["role"] == "user")
        question = str(messages[at]["content"])
        if at == len(messages) - 1 and (tool := USE.search(question)):
            return wire.call((tool[1], ARGUMENTS.get(tool[1], "{}")))
        ways = (way for name, way in WAYS.items() if name in question)
        return next(ways, _normal_reply)(_key(request), elsewhere)

    return answer


def pages() -> dict[str, Any]:
    return {"/echo": _echo, "/mcp": _mcp}


def _key(request: Request) -> str:
    told = request.headers.get("authorization") or request.headers.get("x-api-key", "")
    return told.removeprefix("Bearer ")


def _normal_reply(key: str, elsewhere: str) -> Reply:
    return wire.say("It is done.")


def _refuse(key: str, elsewhere: str) -> Reply:
    return wire.fail(401, f"Incorrect API key provided: {key}. You sent {key!r}.")


def _error_reply(key: str, elsewhere: str) -> Reply:
    return wire.fail(500, f"The headers were Authorization: Bearer {key} and x-key:{key}")


def _loose(key: str, elsewhere: str) -> Reply:
    body = f"<h1>Bad Gateway</h1><p>{key}".encode()
    return Reply(parts=(body,), status=400, headers={"Content-Length": str(len(body))})


def _redirect_reply(key: str, elsewhere: str) -> Reply:
    there = f"{elsewhere}/chat/completions?key={key}"
    return Reply(status=307, headers={"Location": there, "Content-Length": "0"})


def _midway(key: str, elsewhere: str) -> Reply:
    error = {"error": {"message": f"The quota of {key} is used up.", "code": "500"}}
    return Reply(parts=(wire.chunk({"content": "It is "}), error))


WAYS = {
    "refuse": _refuse,
    "broken": _error_reply,
    "loose": _loose,
    "moved": _redirect_reply,
    "midway": _midway,
}


def _echo(request: Request) -> dict[str, Any]:
    return {"headers": dict(request.headers), "lines": str(dict(request.headers))}


def _mcp(request: Request) -> Any:
    if request.method != "POST" or "id" not in request.body:
        status = 202 if request.method == "POST" else 405
        return Reply(status=status, headers={"Content-Length": "0"})
    result = _result(request, request.body["method"])
    return {"jsonrpc": "2.0", "id": request.body["id"], "result": result}


def _result(request: Request, method: str) -> dict[str, Any]:
    match method:
        case "initialize":
            version = request.body["params"]["protocolVersion"]
            about = {"name": "far", "version": "1"}
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
        case "tools/list":
            return {"tools": [ECHO]}
        case "tools/call":
            return {"content": [{"type": "text", "text": json.dumps(dict(request.headers))}]}
    return {}
