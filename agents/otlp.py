"""Spans to a monitor: OTLP over HTTP, as protobuf, which every receiver takes.

The few messages of it that a trace needs are written by hand: they are frozen since OTLP 1.0,
and the packages that speak it would have to be installed and imported for them.
"""

import logging
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from time import sleep

import httpx

from agents.spans import Note, Span, Value

logger = logging.getLogger(__name__)

TRACES = "/v1/traces"
HEADERS = {"content-type": "application/x-protobuf", "user-agent": "ashiato"}
WITHIN = 10.0
PAUSES = (0.5, 2.0)
TRY_AGAIN = {408, 429, 500, 502, 503, 504}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ERROR = 2
VARINT, FIXED, BYTES = 0, 1, 2


class Exporter:
    """Sends spans; what cannot be sent after a few tries is counted, and said once."""

    def __init__(
        self, endpoint: str, headers: Mapping[str, str], resource: Mapping[str, Value]
    ) -> None:
        base = endpoint.rstrip("/")
        self.address = base if base.endswith(TRACES) else base + TRACES
        self.resource = resource
        self.lost = 0
        self.is_away = False
        self._client = httpx.Client(headers={**HEADERS, **headers}, timeout=WITHIN)

    def send(self, spans: Sequence[Span]) -> bool:
        if trouble := self._sent(encode(self.resource, spans)):
            self.lost += len(spans)
            self._mourn(trouble)
            return False
        if self.is_away:
            self.is_away = False
            logger.warning("The monitor takes spans again; %d were lost.", self.lost)
        return True

    def close(self) -> None:
        self._client.close()

    def _sent(self, body: bytes) -> str:
        """What was wrong in the end; nothing where it has arrived."""
        trouble, is_passing = self._post(body)
        for pause in PAUSES:
            if not is_passing:
                break
            sleep(pause)
            trouble, is_passing = self._post(body)
        return trouble

    def _post(self, body: bytes) -> tuple[str, bool]:
        try:
            answer = self._client.post(self.address, content=body)
        except httpx.HTTPError as error:
            return repr(error), True
        if answer.is_success:
            return "", False
        return f"HTTP {answer.status_code}", answer.status_code in TRY_AGAIN

    def _mourn(self, trouble: str) -> None:
        if not self.is_away:
            self.is_away = True
            place = httpx.URL(self.address).host
            logger.warning("The monitor at %s does not take spans: %s", place, trouble)


def encode(resource: Mapping[str, Value], spans: Iterable[Span]) -> bytes:
    """An ExportTraceServiceRequest."""
    scope = _text(1, "ashiato")
    scoped = _part(1, scope) + b"".join(_part(2, _span(span)) for span in spans)
    return _part(1, _part(1, _attributes(1, resource)) + _part(2, scoped))


def _span(span: Span) -> bytes:
    return b"".join(
        [
            _part(1, span.trace),
            _part(2, span.id),
            _part(4, span.parent) if span.parent else b"",
            _text(5, span.name),
            _number(6, span.kind),
            _time(7, span.began),
            _time(8, span.ended or span.began),
            _attributes(9, span.attributes),
            *(_part(11, _note(note)) for note in span.notes),
            _part(15, _status(span.failure)) if span.failure is not None else b"",
        ]
    )


def _note(note: Note) -> bytes:
    return _time(1, note.time) + _text(2, note.name) + _attributes(3, note.attributes)


def _status(failure: str) -> bytes:
    return (_text(2, failure) if failure else b"") + _number(3, ERROR)


def _attributes(field: int, values: Mapping[str, Value]) -> bytes:
    pairs = ((_text(1, name), _part(2, _any(value))) for name, value in values.items())
    return b"".join(_part(field, name + value) for name, value in pairs)


def _any(value: Value) -> bytes:
    match value:
        case str():
            return _text(1, value)
        case bool():
            return _number(2, value)
        case int():
            return _number(3, value)
        case float():
            return _tag(4, FIXED) + struct.pack("<d", value)
    return _part(5, b"".join(_part(1, _any(item)) for item in value))


def _time(field: int, moment: datetime) -> bytes:
    nanoseconds = (moment - EPOCH) // timedelta(microseconds=1) * 1000
    return _tag(field, FIXED) + struct.pack("<Q", max(0, nanoseconds))


def _text(field: int, text: str) -> bytes:
    return _part(field, text.encode(errors="replace"))


def _part(field: int, payload: bytes) -> bytes:
    return _tag(field, BYTES) + _varint(len(payload)) + payload


def _number(field: int, number: int) -> bytes:
    return _tag(field, VARINT) + _varint(number)


def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(number: int) -> bytes:
    number &= 2**64 - 1  # a negative one is written as its complement
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
