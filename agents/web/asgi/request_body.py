"""Request bodies: small ones in memory, others in a file that a thread writes as they arrive.

Neither Twisted nor Daphne reads or parses a body: Django gets the file. Files have no name, so
nothing remains of them when the client, the request or the process ends.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from tempfile import TemporaryFile
from typing import IO, Any

from daphne import http_protocol
from django.conf import settings

from .. import error_pages

logger = logging.getLogger(__name__)

MAX_MEMORY_BYTES = 64 * 1024
MAX_UNWRITTEN_BYTES = 256 * 1024
# Keys of a scope's `extensions`.
BODY_FILE = "ashiato.body_file"
REFUSAL = "ashiato.refusal"
_writers = ThreadPoolExecutor(4, thread_name_prefix="bodies")

# Both are untyped. Importing Daphne's server would install a reactor, the caller's choice.
Request: Any = http_protocol.WebRequest
Server: Any = object


class Body:
    """What has arrived of a request's body; the channel waits while the disk is slower."""

    def __init__(self, channel: Any) -> None:
        self.size = 0
        self.is_closed = False
        self._channel = channel
        self._unwritten: list[bytes] = []
        self._unwritten_bytes = 0
        self._file: IO[bytes] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._error: OSError | None = None

    @property
    def is_in_memory(self) -> bool:
        return self.size <= MAX_MEMORY_BYTES

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.is_closed or self._error is not None:
            return
        self._unwritten.append(data)
        self._unwritten_bytes += len(data)
        if self.is_in_memory:
            return
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())
        if self._unwritten_bytes > MAX_UNWRITTEN_BYTES:
            self._channel.hold("disk")

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._unwritten:
                pieces = self._unwritten
                self._unwritten = []
                self._unwritten_bytes = 0
                await loop.run_in_executor(_writers, self._append, pieces)
                self._channel.release("disk")
        except OSError as error:
            self._error = error
        finally:
            self._channel.release("disk")
            if self.is_closed and self._file is not None:
                self._file.close()

    def _append(self, pieces: list[bytes]) -> None:
        if self._file is None:
            self._file = TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115
        self._file.writelines(pieces)

    async def finish(self) -> IO[bytes]:
        """Return the whole body as a file at its start; raise OSError if the disk is full."""
        if self._writing is not None:
            await self._writing
        if self._error is not None:
            raise self._error
        if self._file is None or self.is_closed:
            return self.in_memory()
        file = self._file
        self._file = None
        await asyncio.get_running_loop().run_in_executor(_writers, file.seek, 0)
        return file

    def in_memory(self) -> BytesIO:
        return BytesIO(b"".join(self._unwritten))

    def close(self) -> None:
        """Discard it; a thread that is writing ends first."""
        self.is_closed = True
        self._unwritten = []
        is_writing = self._writing is not None and not self._writing.done()
        if self._file is not None and not is_writing:
            self._file.close()


class BodyRequest(Request):  # type: ignore[misc]
    """A request whose body goes to the application as a file.

    `refusal` is a view that answers instead of the route's own, without the body.
    """

    body_file: IO[bytes] | None = None
    refusal: Callable[..., Any] | None = None
    checking: asyncio.Task[None] | None = None  # whether the sender may send that much
    turn: asyncio.Semaphore | None = None  # of its sender's large bodies
    content: Any  # a Body until it is complete
    _finishing: asyncio.Task[None] | None = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, parsePOSTFormSubmission=False)

    def gotLength(self, length: int | None) -> None:
        self.content = Body(self.channel)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Wait for what the body still needs; usually nothing."""
        if self.checking is None and self.refusal is None and self.content.is_in_memory:
            self._set_length(self.content.size)
            self.content = self.content.in_memory()
            super().requestReceived(command, path, version)
        else:
            self._finishing = asyncio.ensure_future(self._finish(command, path, version))

    async def _finish(self, command: bytes, path: bytes, version: bytes) -> None:
        body = self.content
        try:
            if self.checking is not None:
                await self.checking
            if self.refusal is None:
                self.body_file = await body.finish()
        except OSError as error:
            logger.error("A request's body can't be saved: %s", error)
            self.refusal = error_pages.disk_full
        if self._disconnected:
            return
        if self.refusal is not None:
            body.close()
        else:
            self._set_length(body.size)
        self.content = BytesIO()
        super().requestReceived(command, path, version)

    def end_turn(self) -> None:
        """Let the next large body of its sender arrive."""
        if self.turn is not None:
            self.turn.release()
            self.turn = None

    def _set_length(self, size: int) -> None:
        """Say how long a chunked body was: Django reads nothing of one without a length."""
        if self.requestHeaders.hasHeader(b"Transfer-Encoding"):
            self.requestHeaders.removeHeader(b"Transfer-Encoding")
            self.requestHeaders.setRawHeaders(b"Content-Length", [b"%d" % size])


class BodyFileMixin(Server):  # type: ignore[misc]
    """A mixin for Daphne's server: the application gets bodies as files."""

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if scope["type"] == "http":
            extensions = {BODY_FILE: protocol.body_file, REFUSAL: protocol.refusal}
            scope["extensions"] = {name: value for name, value in extensions.items() if value}
            protocol.body_file = None  # closed by the application, also if the client leaves
        return super().create_application(protocol, scope)
