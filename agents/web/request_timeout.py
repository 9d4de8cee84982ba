"""Closes connections whose request isn't completed in time, or has too large a body.

Headers must arrive within HEADERS_SECONDS. A body may take long, as long as MIN_BODY_BYTES
arrive every IDLE_SECONDS: a slow upload continues, one that only keeps the connection busy
doesn't. Once a request is complete, no limit applies: streamed responses and sockets stay open.
Bodies are on the disk before anyone is asked who sends them, so `max_body_bytes` limits them.
"""

import logging
from typing import Any

from daphne.http_protocol import HTTPFactory
from twisted.web.http import HTTPChannel

from agents.installation import configured

logger = logging.getLogger(__name__)

HEADERS_SECONDS, IDLE_SECONDS = 10.0, 10.0  # seconds
MIN_BODY_BYTES = 1_000  # bytes
MAX_FILE_MB = 200
# A blocked event loop runs its timers before it reads the data that arrived.
GRACE_SECONDS = 0.25  # seconds
TIMEOUT_RESPONSE = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)
TOO_LARGE_RESPONSE = (
    b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


def max_body_bytes() -> int:
    """Return the size of the largest upload: files or exported chats, and their form."""
    return (max(configured.IMPORT_MB.value, MAX_FILE_MB) + 2) * 1024**2


class TimedChannel(HTTPChannel):
    """One connection to Daphne, with a deadline per request."""

    abortTimeout = 2  # for clients that don't even read the response
    callLater: Any  # untyped in Twisted
    transport: Any
    deadline: Any = None
    received = 0  # bytes of this request since the deadline was set
    has_headers = is_answering = is_refused = False
    length: int | None
    body = 0  # bytes of this request's body

    def connectionMade(self) -> None:
        super().connectionMade()
        self._set_deadline(HEADERS_SECONDS)

    def dataReceived(self, data: bytes) -> None:
        # Between two requests a browser may be idle for longer; Twisted handles that.
        if self.deadline is None and not self.is_answering:
            self._set_deadline(HEADERS_SECONDS)
        self.received += len(data)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        # Daphne trusts any client's header about the root path.
        self.requests[-1].requestHeaders.removeHeader(b"Daphne-Root-Path")
        super().allHeadersReceived()
        self.has_headers, self.body = True, 0
        self._set_deadline(IDLE_SECONDS)
        if self.length is not None and self.length > max_body_bytes():
            self._refuse()

    def rawDataReceived(self, data: bytes) -> None:
        if self.is_refused:
            return
        self.body += len(data)
        if self.has_headers and self.body > max_body_bytes():  # of unknown length
            self._refuse()
            return
        super().rawDataReceived(data)

    def _refuse(self) -> None:
        self.is_refused = True
        self._cancel_deadline()
        logger.info("%s sent too large a request.", self.transport.getPeer().host)
        self.transport.write(TOO_LARGE_RESPONSE)
        self.timeoutConnection()

    def allContentReceived(self) -> None:
        self._cancel_deadline()
        self.has_headers, self.is_answering = False, True
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:
        self.is_answering = False
        super().requestDone(request)

    def connectionLost(self, reason: Any = None) -> None:
        self._cancel_deadline()
        super().connectionLost(reason)

    def _set_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self.received = 0
        self.deadline = self.callLater(seconds, self._look, seconds)

    def _look(self, seconds: float) -> None:
        self.deadline = self.callLater(GRACE_SECONDS, self._check_deadline, seconds)

    def _check_deadline(self, seconds: float) -> None:
        self.deadline = None
        if self.has_headers and self.received >= MIN_BODY_BYTES:
            self._set_deadline(seconds)
            return
        if self.requests or self.received:
            who = self.transport.getPeer().host
            logger.info("%s didn't finish sending its request in time. Connection closed.", who)
            self.transport.write(TIMEOUT_RESPONSE)
        self.timeoutConnection()

    def _cancel_deadline(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


def install_request_timeouts() -> None:
    HTTPFactory.protocol = TimedChannel  # type: ignore[assignment]  # called as a factory
