"""Children that stay: each answers one request after the other until it is stopped."""

import logging
import os
import selectors
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

from . import worker as workers
from .processes import WorkerFailed, kill_group
from .worker import Grant, Worker

logger = logging.getLogger(__name__)

HEADER_BYTES = 4  # the length of what follows, little-endian
PIECE_BYTES = 2**16
MAX_COMPLAINT_BYTES = 4_000
EXIT_TIMEOUT_SECONDS = 5.0


class PersistentChild:
    """At most one child of a worker; a request starts it if it isn't running.

    Requests and replies are bytes, with their length before them. The child ends with the
    thread that started it, so requests have to come from a thread that stays.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._lock = Lock()
        self._process: _Process | None = None
        self._used_at = 0.0

    @property
    def pid(self) -> int | None:
        """The child's process, if it is running."""
        process = self._process
        return process.pid if process is not None and process.is_running else None

    def ask(self, request: bytes, grant: Grant) -> bytes:
        """Return the child's reply; raise TimeoutError if it is late.

        If a child that has worked before ends instead, a new one is asked once; if a new one
        ends, WorkerFailed is raised. A child that failed is never asked again.
        """
        until = time.monotonic() + grant.seconds
        with self._locked(grant.seconds):
            if self.pid is not None:
                try:
                    return self._exchange(request, until)
                except WorkerFailed as error:
                    logger.warning("The %s is started again: it %s", self._worker.name, error)
            self._end()
            self._process = _Process(self._worker, grant)
            return self._exchange(request, until)

    def stop(self) -> None:
        """End the child; the next request starts another one."""
        with self._locked(EXIT_TIMEOUT_SECONDS):
            self._end()

    def stop_if_idle(self, seconds: float) -> None:
        """End the child if it had no request for so long."""
        # While a request holds the lock, the child isn't idle.
        with suppress(TimeoutError), self._locked(0.0):
            if time.monotonic() - self._used_at >= seconds:
                self._end()

    @contextmanager
    def _locked(self, seconds: float) -> Iterator[None]:
        if not self._lock.acquire(timeout=seconds):
            raise TimeoutError
        try:
            yield
        finally:
            self._lock.release()

    def _exchange(self, request: bytes, until: float) -> bytes:
        assert self._process is not None
        try:
            reply = self._process.exchange(request, until)
        except BaseException:
            self._end()
            raise
        self._used_at = time.monotonic()
        return reply

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class _Process:
    """A started child and its three pipes, which are read and written without blocking."""

    def __init__(self, worker: Worker, grant: Grant) -> None:
        self._max_bytes = worker.output_bytes
        self._complaint = bytearray()
        self._child = subprocess.Popen(
            workers.command(worker, grant),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=workers.environment(worker, grant),
            start_new_session=True,
            bufsize=0,
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._input = self._child.stdin
        self._output = self._child.stdout
        self._stderr = self._child.stderr
        for pipe in (self._input, self._output, self._stderr):
            os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def exchange(self, request: bytes, until: float) -> bytes:
        """Send a request and return its reply; raise TimeoutError or WorkerFailed."""
        unsent = memoryview(len(request).to_bytes(HEADER_BYTES, "little") + request)
        received = bytearray()
        size = HEADER_BYTES  # of the whole reply, once its header is there
        with selectors.DefaultSelector() as selector:
            selector.register(self._input, selectors.EVENT_WRITE)
            selector.register(self._output, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            while len(received) < size:
                if (seconds := until - time.monotonic()) <= 0:
                    raise TimeoutError
                for key, _ in selector.select(seconds):
                    if key.fileobj is self._input:
                        try:
                            unsent = unsent[os.write(key.fd, unsent) :]
                        except BrokenPipeError:
                            raise WorkerFailed(self._last_words()) from None
                        if not unsent:
                            selector.unregister(self._input)
                    elif piece := os.read(key.fd, PIECE_BYTES):
                        if key.fileobj is self._stderr:
                            self._add_complaint(piece)
                        else:
                            received += piece
                    elif key.fileobj is self._stderr:
                        selector.unregister(self._stderr)
                    else:
                        raise WorkerFailed(self._last_words())
                if len(received) >= HEADER_BYTES:
                    size = HEADER_BYTES + int.from_bytes(received[:HEADER_BYTES], "little")
                if size - HEADER_BYTES > self._max_bytes or len(received) > size:
                    raise WorkerFailed(f"wrote more than {self._max_bytes:,} bytes")
        return bytes(received[HEADER_BYTES:])

    def end(self) -> None:
        """Kill it, unless it has ended by itself."""
        if self.is_running:
            kill_group(self._child.pid)
            self._wait()
        for pipe in (self._input, self._output, self._stderr):
            pipe.close()

    def _last_words(self) -> str:
        """Say how it ended: it has closed a pipe, so it has, or is about to."""
        self._wait()
        self._add_complaint(self._stderr.read() or b"")
        complaint = self._complaint.decode("utf-8", "replace")
        return f"ended with {self._child.returncode}: {complaint[-500:]!r}"

    def _add_complaint(self, piece: bytes) -> None:
        self._complaint += piece
        del self._complaint[:-MAX_COMPLAINT_BYTES]

    def _wait(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(EXIT_TIMEOUT_SECONDS)
