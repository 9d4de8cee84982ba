"""A small HTTP API with an OpenAPI document of its own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.tools.openapi_documents import SHOP

DOCUMENT = {**SHOP, "servers": [{"url": "v1"}]}
KEY = "k3y-of-the-shop"


class ShopServer(ThreadingHTTPServer):
    """A server that records its requests and answers 401 without its key."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.document: Any = DOCUMENT
        self.requests: list[dict[str, Any]] = []

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}/openapi.json"


class _Handler(BaseHTTPRequestHandler):
    server: ShopServer

    def do_GET(self) -> None:
        if self.path == "/openapi.json":
            self._answer(200, self.server.document)
        elif not self.path.startswith("/v1/"):
            self._answer(404, {"error": "not found"})
        elif self.headers.get("X-Api-Key") != KEY:
            self._answer(401, {"error": "no key"})
        else:
            self._answer(200, self._keep())

    do_POST = do_DELETE = do_GET

    def _keep(self) -> dict[str, Any]:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        request = {
            "method": self.command,
            "path": parts.path,
            "query": parse_qsl(parts.query),
            "trace": self.headers.get("X-Trace"),
            "type": self.headers.get("Content-Type"),
            "body": self.rfile.read(length).decode(),
        }
        self.server.requests.append(request)
        return request

    def _answer(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def shop_server() -> Iterator[ShopServer]:
    server = ShopServer()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
