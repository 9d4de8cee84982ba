"""Parses server-sent events: bytes in, event data out.

It supports the standard and common deviations: events without blank lines between them, a bare
JSON object in the stream, or nothing but one, if a server doesn't stream, and llama.cpp's
errors, which come in a field of their own.
"""

from .json_codec import is_json
from .provider_errors import StreamGarbled

MAX_EVENT_BYTES = 16 * 1024 * 1024
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
        if not piece:
            return self._finish()
        if (events := self._complete_events(piece)) is not None:
            return events
        *lines, rest = self._normalize_newlines(piece).split(b"\n")
        events = []
        for line in lines:
            if self._line:
                line = b"".join([*self._line, line])
                self._line.clear()
            self._process_line(line, events)
        if rest:
            self._line.append(rest)
        self._line_size = len(rest) + (0 if lines else self._line_size)
        if self._line_size + self._data_size > MAX_EVENT_BYTES:
            raise StreamGarbled("an event without an end")
        return events

    def _complete_events(self, piece: bytes) -> list[bytes] | None:
        """Return the events of a piece with only complete one-line events: the usual case."""
        is_between = self._has_begun and not (self._is_bare or self._line or self._data)
        if not is_between or self._follows_return or not piece.endswith(b"\n\n"):
            return None
        events = piece[len(DATA_PREFIX) : -2].split(EVENT_SEPARATOR)
        are_lines = piece.startswith(DATA_PREFIX) and piece.count(b"\n") == 2 * len(events)
        return [*filter(None, events)] if are_lines and b"\r" not in piece else None

    def _finish(self) -> list[bytes]:
        events: list[bytes] = []
        self.has_ended = True
        self._process_line(b"".join(self._line), events)
        self._line.clear()
        self._end_event(events)
        return events

    def _normalize_newlines(self, piece: bytes) -> bytes:
        """Normalize the three kinds of line ends; CR and LF may come in two pieces."""
        if self._follows_return:
            piece = piece.removeprefix(b"\n")
            self._follows_return = False
        if b"\r" not in piece:
            return piece
        self._follows_return = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _process_line(self, line: bytes, events: list[bytes]) -> None:
        if not self._has_begun:
            line = self._detect_format(line)
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

    def _detect_format(self, line: bytes) -> bytes:
        """Detect by the first line what follows: events, an object, or an HTML page."""
        line = line.removeprefix(UTF8_BOM)
        start = line.lstrip()[:1]
        if start == b"<":
            raise StreamGarbled("a page for people")
        self._has_begun = bool(start)
        self._is_bare = start == b"{"
        return line

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
