"""The resources of an MCP server as a place that a collection follows."""

import asyncio
import mimetypes
import threading
from collections.abc import Coroutine, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, TypeVar

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.knowledge.sources import (
    FileUnreadable,
    Heartbeat,
    Place,
    PlaceFile,
    PlaceUnreadable,
)
from agents.models import DocumentSource, McpServer
from agents.tools.mcp.configuration.config import ServerConfig
from agents.tools.mcp.connection.connection import Connection
from agents.tools.mcp.errors import ServerUnavailable

from . import sign_ins
from .configuration import server_config
from .connections import egress

Value = TypeVar("Value")

MAX_PAGES = 2_000
WAIT_SECONDS = 2.0
CLOSE_SECONDS = 20.0
NO_SERVER = _("The MCP server was deleted or disabled.")
PERSONAL = _(
    "%(name)s has a sign-in, process or session for each user or chat, so a collection can't "
    "follow it."
)
NO_SIGN_IN = _("Nobody has signed in to %(name)s. Sign in on its page.")
ENDLESS = _("%(name)s lists its resources without an end.")
# Types whose usual ending isn't the first one that Python knows.
ENDINGS = {"text/plain": ".txt", "text/markdown": ".md", "text/html": ".html"}


def refusal(server: McpServer) -> str:
    """Return why a collection can't follow a server, or an empty text."""
    is_shared = server.isolation == McpServer.Isolation.SHARED
    if server.sign_in == McpServer.SignIn.USER or not is_shared:
        return PERSONAL.fill(name=server.name)
    return ""


@contextmanager
def open_server(source: DocumentSource, heartbeat: Heartbeat) -> Iterator[Place]:
    """Connect to a server with its own sign-in, apart from the connections of runs."""
    server = McpServer.objects.filter(pk=source.place.get("server"), enabled=True).first()
    if server is None:
        raise PlaceUnreadable(NO_SERVER)
    if problem := refusal(server):
        raise PlaceUnreadable(problem)
    config = server_config(server)
    if server.sign_in:
        sign_in = sign_ins.find(server, None)
        if sign_in is None:
            raise PlaceUnreadable(NO_SIGN_IN.fill(name=server.name))
        config = replace(config, sign_in=sign_in)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="source", daemon=True)
    thread.start()
    place = _Server(config, loop, heartbeat, str(source.place.get("uri_prefix", "")))
    try:
        yield place
    finally:
        place.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_SECONDS)
        if not thread.is_alive():
            loop.close()


class _Server:
    version = ""

    def __init__(
        self,
        config: ServerConfig,
        loop: asyncio.AbstractEventLoop,
        heartbeat: Heartbeat,
        uri_prefix: str,
    ) -> None:
        self._config = config
        self._loop = loop
        self._heartbeat = heartbeat
        self._uri_prefix = uri_prefix
        self._connection: Connection | None = None

    def files(self) -> Iterator[PlaceFile]:
        cursor: str | None = None
        cursors = {cursor}
        for _page in range(MAX_PAGES):
            try:
                resources, cursor = self._wait(self._connected().list_resources(cursor))
            except ToolError as error:
                raise PlaceUnreadable(str(error)) from error
            for resource in resources:
                if resource.uri.startswith(self._uri_prefix):
                    # Without a version it is read at each check, and changed by its content.
                    version = f"{resource.modified} {resource.size}"
                    yield PlaceFile(
                        key=resource.uri,
                        version=version if resource.modified else "",
                        name=_file_name(resource.name, resource.uri, resource.mime_type),
                        size=max(0, resource.size),
                    )
            if not cursor:
                return
            if cursor in cursors:
                break
            cursors.add(cursor)
        raise PlaceUnreadable(ENDLESS.fill(name=self._config.name))

    def read(self, file: PlaceFile) -> Iterator[bytes]:
        try:
            yield self._wait(self._connected().read_resource(file.key))
        except ServerUnavailable as error:
            raise PlaceUnreadable(str(error)) from error
        except ToolError as error:
            raise FileUnreadable(str(error)) from error

    def close(self) -> None:
        if self._connection is not None:
            closing = asyncio.run_coroutine_threadsafe(self._connection.close(), self._loop)
            futures.wait([closing], CLOSE_SECONDS)

    def _connected(self) -> Connection:
        if self._connection is None:

            async def connect() -> Connection:
                return Connection(self._config, egress=egress())

            self._connection = self._wait(connect())
        return self._connection

    def _wait(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Return the result of work on the loop; end it if the check has to end."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while True:
                self._heartbeat()
                try:
                    return future.result(WAIT_SECONDS)
                except TimeoutError:
                    if future.done():
                        raise
        finally:
            future.cancel()


def _file_name(name: str, uri: str, mime_type: str) -> str:
    """Return a name with the ending of the resource's type."""
    name = name.strip() or uri
    if PurePosixPath(name).suffix and not mime_type:
        return name
    kind = mime_type.partition(";")[0].strip().lower()
    ending = ENDINGS.get(kind) or mimetypes.guess_extension(kind) or ""
    if not kind:
        ending = PurePosixPath(uri).suffix or ".txt"
    return name if name.lower().endswith(ending) else f"{name}{ending}"
