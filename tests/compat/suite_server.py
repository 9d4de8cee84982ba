"""Serves the product to MCP's suite: `python -m tests.compat.suite_server`.

The suite sends no key, and has names of its own. So each request gets the key in COMPAT_KEY,
a call of a tool the question that agents need, and addresses of its resources become ours.
"""

import json
import os
from typing import Any

import project.asgi
from project.commands import execute

SERVED = project.asgi.application
KEY = os.environ["COMPAT_KEY"]
RESOURCES = {
    "test://static-text": "ashiato://documents/123",
    "test://template/123/data": "ashiato://runs/123.md",
}


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        headers = [*scope["headers"], (b"authorization", f"Bearer {KEY}".encode())]
        if scope["method"] == "POST" and scope["path"] == "/mcp":
            receive, size = await _translated(receive)
            headers = [header for header in headers if header[0] != b"content-length"]
            headers.append((b"content-length", str(size).encode()))
        scope = {**scope, "headers": headers}
    await SERVED(scope, receive, send)


async def _translated(receive: Any) -> tuple[Any, int]:
    """Return the request's body as the product needs it, and its size."""
    body = b""
    while (event := await receive())["type"] == "http.request":
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    message = json.loads(body)
    parameters = message.get("params") or {}
    match message.get("method"):
        case "tools/call":
            parameters["arguments"] = {"question": "Go", **parameters.get("arguments", {})}
        case "resources/read":
            parameters["uri"] = RESOURCES.get(parameters["uri"], parameters["uri"])
    body = json.dumps(message).encode()
    events = [{"type": "http.request", "body": body}]

    async def receive_translated() -> Any:
        return events.pop() if events else await receive()

    return receive_translated, len(body)


if __name__ == "__main__":
    project.asgi.application = application
    execute(["manage.py", "serve"])
