"""Closes connections on which a request is begun and not sent to its end.

Headers have to be there within HEADERS seconds. A body may take as long as its line needs, as
long as LEAST bytes of it come in every IDLE seconds: an upload over a slow line goes on, one
that only keeps the connection busy doesn't. Once a request is here, nothing of this holds:
answers in pieces and sockets stay open.
"""

import logging
from typing import Any

from daphne.http_protocol import HTTPFactory
from twisted.web.http import HTTPChannel

logger = logging.getLogger(__name__)

HEADERS_SECONDS, IDLE_SECONDS = 10.0, 10.0  # seconds
MIN_BODY_BYTES = 1_000  # bytes
# An event loop that was held up hears of its timers before it hears of what came meanwhile.
GRACE_SECONDS = 0.25  # seconds
TIMEOUT_RESPONSE = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class TimedChannel(HTTPChannel):
    """One connection to Daphne, with a deadline for each request that comes on it."""

    abortTimeout = 2  # for whoever doesn't even read that it is over
    deadline: Any = None
    received = 0  # bytes of this request that came since the deadline was set
    has_headers = is_answering = False

    def connectionMade(self) -> None:
        super().connectionMade()
        self._set_deadline(HEADERS_SECONDS)

    def dataReceived(self, data: bytes) -> None:
        # Between two requests a browser may keep quiet for longer; Twisted ends that.
        if self.deadline is None and not self.is_answering:
            self._set_deadline(HEADERS_SECONDS)
        self.received += len(data)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        # Daphne believes any client's header about the path that the site starts at.
        self.requests[-1].requestHeaders.removeHeader(b"Daphne-Root-Path")
        super().allHeadersReceived()
        self.has_headers = True
        self._set_deadline(IDLE_SECONDS)

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
    HTTPFactory.protocol = TimedChannel
