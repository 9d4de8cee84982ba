"""Closes connections whose request isn't completed in time, and refuses too large bodies.

Headers must arrive within HEADERS_SECONDS. A body may take long, as long as MIN_BODY_BYTES
arrive every IDLE_SECONDS: a slow upload continues, one that only keeps the connection busy
doesn't. Once a request is complete, no limit applies: streamed responses and sockets stay open.

A body that is larger than anyone may send stops arriving until it is known who sends it, and
where (`body_limits`). If that is too much, the rest isn't read: the client gets the page that
says so, and the connection is closed. A user's files arrive a few at a time.
"""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from typing import Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

from daphne import http_protocol
from daphne.http_protocol import HTTPFactory
from twisted.web.http import HTTPChannel

from agents.db import database

from .. import error_pages
from . import body_limits
from .daphne_sockets import write_at_once
from .request_body import BodyRequest

logger = logging.getLogger(__name__)

HEADERS_SECONDS = 10.0
IDLE_SECONDS = 10.0
MIN_BODY_BYTES = 1_000  # bytes
# A client that is still sending gets this long to read why it is refused.
LINGER_SECONDS = 5.0
# A blocked event loop runs its timers before it reads the data that arrived.
GRACE_SECONDS = 0.25  # seconds
TIMEOUT_RESPONSE = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


# By user, as long as a request holds one.
_turns: WeakValueDictionary[int | None, asyncio.Semaphore] = WeakValueDictionary()


class TimedChannel(HTTPChannel):
    """One connection to Daphne, with a deadline and a size limit per request."""

    abortTimeout = 2  # for clients that don't even read the response
    callLater: Any  # untyped in Twisted
    transport: Any
    _networkProducer: Any
    _path: Any
    deadline: Any = None
    received = 0  # bytes of this request since the deadline was set
    has_headers = is_answering = is_refused = expects_continue = False
    length: int | None
    body = 0  # bytes of this request's body
    allowed = body_limits.ANONYMOUS_BYTES  # for this request's body

    def connectionMade(self) -> None:
        self.holds: set[str] = set()
        super().connectionMade()
        self._set_deadline(HEADERS_SECONDS)

    def dataReceived(self, data: bytes) -> None:
        if self.is_refused:
            return
        # Between two requests a browser may be idle for longer; Twisted handles that.
        if self.deadline is None and not self.is_answering:
            self._set_deadline(HEADERS_SECONDS)
        self.received += len(data)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        request = self.requests[-1]
        # Daphne trusts any client's header about the root path.
        request.requestHeaders.removeHeader(b"Daphne-Root-Path")
        self.allowed = body_limits.ANONYMOUS_BYTES
        is_large = self.length is not None and self.length > self.allowed
        if is_large:
            # Twisted would ask for the body at once.
            self.expects_continue = request.requestHeaders.hasHeader(b"Expect")
            request.requestHeaders.removeHeader(b"Expect")
        super().allHeadersReceived()
        self.has_headers = True
        self.body = 0
        self._set_deadline(IDLE_SECONDS)
        if is_large:
            self._start_check(request)

    def rawDataReceived(self, data: bytes) -> None:
        if self.has_headers and self.length is None:
            request = self.requests[-1]
            self.body += len(data)
            if self.body > self.allowed and request.checking is None:
                self._start_check(request)
            elif self.body > self.allowed and request.checking.done():
                self._refuse(request, partial(error_pages.too_large, limit=self.allowed))
                return
        super().rawDataReceived(data)

    def _start_check(self, request: BodyRequest) -> None:
        self.hold("check")
        path = unquote(self._path.partition(b"?")[0].decode("latin-1"))
        headers = request.requestHeaders
        cookies = b"; ".join(headers.getRawHeaders(b"Cookie", [])).decode("latin-1")
        proof = b"".join(headers.getRawHeaders(b"Authorization", [])[:1]).decode("latin-1")
        checking = self._check_sender(request, path, cookies, proof)
        request.checking = asyncio.ensure_future(checking)

    async def _check_sender(
        self, request: BodyRequest, path: str, cookies: str, authorization: str
    ) -> None:
        """Let the body arrive if its sender may send that much, and refuse it otherwise."""
        refusal: Any = None
        try:
            sender = await database.run(body_limits.find_sender, path, cookies, authorization)
            self.allowed = sender.max_bytes
            if (self.length or self.body) > self.allowed:
                refusal = partial(error_pages.too_large, limit=self.allowed)
            elif (self.length or self.allowed) > body_limits.FORM_BYTES:
                # Wait until few other large bodies of this user are here.
                few = asyncio.Semaphore(body_limits.MAX_CONCURRENT_FILES)
                turn = _turns.setdefault(sender.user, few)
                await turn.acquire()
                request.turn = turn
                if request._disconnected:
                    request.end_turn()
        except Exception:
            logger.exception("Can't check who sends a large request.")
            refusal = error_pages.unavailable
        if request._disconnected:
            return
        if refusal is not None:
            self._refuse(request, refusal)
        elif self.expects_continue:
            self._send100Continue()
        self.release("check")

    def _refuse(self, request: BodyRequest, refusal: Any) -> None:
        """Answer without the body, and read no more of the connection."""
        logger.info("%s sent too large a request.", self.transport.getPeer().host)
        request.refusal = refusal
        request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        self.persistent = False
        self.is_refused = True
        request.checking = None
        if self.has_headers:  # not complete yet
            self.allContentReceived()

    def allContentReceived(self) -> None:
        self._cancel_deadline()
        self.has_headers = False
        self.is_answering = True
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:
        self.is_answering = False
        request.end_turn()
        super().requestDone(request)

    def loseConnection(self) -> None:
        if not self.is_refused:
            super().loseConnection()
            return
        # Closed with unread data, the connection would be reset, and the page with it.
        self._networkProducer.unregisterProducer()
        if self._abortingCall is None:
            self._abortingCall = self.callLater(LINGER_SECONDS, self.forceAbortClient)
        self.transport.loseWriteConnection()

    def connectionLost(self, reason: Any = None) -> None:
        self._cancel_deadline()
        for request in self.requests:
            request.end_turn()
        super().connectionLost(reason)

    def writeSequence(self, iovec: Iterable[bytes]) -> None:
        """Write a piece of a streamed response."""
        if rest := write_at_once(self.transport, b"".join(iovec)):
            self.transport.write(rest)

    def hold(self, reason: str) -> None:
        """Read nothing more until every reason is released."""
        self.holds.add(reason)
        self._networkProducer.pauseProducing()

    def release(self, reason: str) -> None:
        if reason not in self.holds:
            return
        self.holds.discard(reason)
        if not self.holds and not self._waitingForTransport:
            self._networkProducer.resumeProducing()

    def _set_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self.received = 0
        self.deadline = self.callLater(seconds, self._look, seconds)

    def _look(self, seconds: float) -> None:
        self.deadline = self.callLater(GRACE_SECONDS, self._check_deadline, seconds)

    def _check_deadline(self, seconds: float) -> None:
        self.deadline = None
        # While its data is held back, the client can't send.
        if self.has_headers and (self.holds or self.received >= MIN_BODY_BYTES):
            self._set_deadline(seconds)
            return
        if self.requests or self.received:
            host = self.transport.getPeer().host
            logger.info(
                "%s didn't finish sending its request in time. Connection closed.", host
            )
            self.transport.write(TIMEOUT_RESPONSE)
        self.timeoutConnection()

    def _cancel_deadline(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


def install_request_timeouts() -> None:
    HTTPFactory.protocol = TimedChannel  # type: ignore[assignment]  # called as a factory
    http_protocol.WebRequest = BodyRequest  # type: ignore[misc]  # as Daphne's factory names it
