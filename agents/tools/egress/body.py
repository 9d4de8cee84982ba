"""The body of a response, unpacked up to its limit."""

import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

from agents.engine.sentences import Sentence as _

from .errors import EgressFailed, ResponseTooLarge, translate_errors

MAX_HEADERS = 100
MAX_HEADER_BYTES = 32_768
CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An unpacked response; header names are in lower case, `url` is that after redirects."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    url: str = ""


class LimitedBody(httpx2.AsyncByteStream):
    """The content of a response, unpacked in small pieces and counted."""

    def __init__(self, response: httpcore2.Response, host: str, max_bytes: int) -> None:
        self._response = response
        self._host = host
        self._max_bytes = max_bytes
        self._gzip: _Gzip | None = None

    def headers(self) -> httpx2.Headers:
        """Return the headers as they apply to the unpacked content."""
        raw = self._response.headers
        size = sum(len(name) + len(value) for name, value in raw)
        if len(raw) > MAX_HEADERS or size > MAX_HEADER_BYTES:
            raise EgressFailed(_("%(host)s sent too many headers.", host=self._host))
        headers = httpx2.Headers(raw)
        encoding = headers.pop("content-encoding", "identity").strip().lower()
        if encoding in {"gzip", "x-gzip"}:
            headers.pop("content-length", None)
            self._gzip = _Gzip()
        elif encoding != "identity":
            raise EgressFailed(
                _(
                    "%(host)s sent a response with the unsupported encoding %(encoding)s.",
                    host=self._host,
                    encoding=repr(encoding[:20]),
                )
            )
        return headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = decoded = 0
        with translate_errors():
            try:
                async for data in self._response.aiter_stream():
                    received += len(data)
                    for piece in self._gzip.pieces(data) if self._gzip else [data]:
                        decoded += len(piece)
                        self._check_size(decoded)
                        yield piece
                    self._check_size(received)
            except zlib.error as error:
                raise EgressFailed(
                    _("The response from %(host)s can't be decompressed.", host=self._host)
                ) from error
        if self._gzip and received and not self._gzip.is_whole:
            raise EgressFailed(_("The response from %(host)s was cut off.", host=self._host))

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise ResponseTooLarge(
                _(
                    "The response from %(host)s is larger than %(limit)s bytes.",
                    host=self._host,
                    limit=f"{self._max_bytes:,}",
                )
            )

    async def aclose(self) -> None:
        await self._response.aclose()


class _Gzip:
    """Unpacks only as much as requested, because a kilobyte may expand to a megabyte."""

    def __init__(self) -> None:
        self._member = _decompressor()

    @property
    def is_whole(self) -> bool:
        return bool(self._member.eof)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        is_more = True
        while is_more:
            if self._member.eof:
                self._member = _decompressor()
            piece = self._member.decompress(data, CHUNK_BYTES)
            yield piece
            data = self._member.unused_data or self._member.unconsumed_tail
            is_more = bool(data) or (len(piece) == CHUNK_BYTES and not self._member.eof)


def _decompressor() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)
