"""Parses server-sent events: bytes in, event data out.

It supports the standard and common deviations: events without blank lines between them, a bare
JSON object in the stream, or nothing but one, if a server doesn't stream, and llama.cpp's
errors, which come in a field of their own.
"""

from collections.abc import Iterable
from typing import Any

from .json_codec import decode, decode_all, is_json
from .provider_errors import StreamGarbled

MAX_EVENT_BYTES = 16 * 1024 * 1024
DONE = b"[DONE]"
DATA_PREFIX = b"data: "
EVENT_SEPARATOR = b"\n\n" + DATA_PREFIX
UTF8_BOM = b"\xef\xbb\xbf"  # byte order mark


class EventReader:
    """Parses the bytes of a response, in pieces of any size."""

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of an unfinished line
        self._data: list[bytes] = []  # lines of an unfinished event
        self._line_size = self._data_size = 0
        self._follows_return = False
        self._has_begun = False
        self._is_bare = False
        self.has_ended = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of events this piece completes; an empty piece ends the stream."""
        events: list[bytes] = []
        if not piece:
            self.has_ended = True
            self._process_line(b"".join(self._line), events)
            self._line.clear()
            self._end_event(events)
            return events
        # The usual case: only complete events of one line.
        is_between = self._has_begun and not (self._is_bare or self._line or self._data)
        if is_between and not self._follows_return and piece.endswith(b"\n\n"):
            complete = piece[len(DATA_PREFIX) : -2].split(EVENT_SEPARATOR)
            are_lines = piece.startswith(DATA_PREFIX)
            are_lines = are_lines and piece.count(b"\n") == 2 * len(complete)
            if are_lines and b"\r" not in piece:
                return [*filter(None, complete)]
        # There are three kinds of line ends, and CR and LF may come in two pieces.
        if self._follows_return:
            piece = piece.removeprefix(b"\n")
            self._follows_return = False
        if b"\r" in piece:
            self._follows_return = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, open_line = piece.split(b"\n")
        for line in lines:
            if self._line:
                line = b"".join([*self._line, line])
                self._line.clear()
            self._process_line(line, events)
        if open_line:
            self._line.append(open_line)
        self._line_size = len(open_line) + (0 if lines else self._line_size)
        if self._line_size + self._data_size > MAX_EVENT_BYTES:
            raise StreamGarbled("an event without an end")
        return events

    def _process_line(self, line: bytes, events: list[bytes]) -> None:
        if not self._has_begun:
            # The first line says what follows: events, an object, or an HTML page.
            line = line.removeprefix(UTF8_BOM)
            start = line.lstrip()[:1]
            if start == b"<":
                raise StreamGarbled("a page for people")
            self._has_begun = bool(start)
            self._is_bare = start == b"{"
        if self._is_bare:
            if line:
                self._add_data(line, events)
        elif line.startswith(b"data:"):
            self._add_data(line[5:].removeprefix(b" "), events)
        elif not line:
            self._end_event(events)
        elif line.startswith(b"error:") and is_json(error := line[6:].strip()):
            events.append(b'{"error":%b}' % error)
        elif line.startswith(b"{"):
            events.append(line)

    def _add_data(self, data: bytes, events: list[bytes]) -> None:
        if len(self._data) == 1 and is_json(self._data[0]):
            self._end_event(events)
        self._data.append(data)
        self._data_size += len(data) + 1

    def _end_event(self, events: list[bytes]) -> None:
        if data := b"\n".join(self._data):
            events.append(data)
        self._data.clear()
        self._data_size = 0


def decode_events(batch: list[bytes]) -> Iterable[Any]:
    """Decode all at once if all are JSON; otherwise one by one, up to the first that isn't."""
    events = decode_all(batch) if len(batch) > 1 else None
    return events or (data if data == DONE else decode(data) for data in batch)
