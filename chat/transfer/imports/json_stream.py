"""Reads a large JSON file one chat at a time.

An export can have hundreds of megabytes, and one broken chat must not cost the others. So the
elements of the outer array are only separated here, by their brackets, and each is parsed on
its own (docs/decisions/chat-import.md).
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from chat.transfer.imports.values import NotImportable, Problem

CHUNK_BYTES = 256 * 1024
MAX_ELEMENT_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 900  # Python's parser ends at 1,000
# Brackets and commas: parsed, an empty object takes a hundred times its two bytes.
MAX_SIGNS = 2_000_000
MAX_SKIPPED_SIGNS = 5_000_000  # what follows an element with more isn't read
MAX_PIECE_BYTES = 8 * 1024 * 1024
BOM = b"\xef\xbb\xbf"
SPACE = b" \t\r\n"
STRUCTURE = re.compile(rb'[{}\[\]",]')
STRING_PART = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class NotJson(Exception):
    """Raised when a file isn't a JSON array or object."""


def elements(
    file: Readable, spend: Callable[[int], None] = lambda _signs: None
) -> Iterator[Any]:
    """Yield the elements of the outer array, or the outer object.

    A NotImportable in place of an element says why that one can't be read. `spend` is given the
    number of brackets and commas read, which is what reading costs. Raises NotJson.
    """
    for raw in _Splitter(file, spend).elements():
        element: Any = raw
        if isinstance(raw, bytes):
            try:
                element = json.loads(raw)
            except (ValueError, RecursionError):
                element = NotImportable(Problem.BROKEN)
        yield element


class _Splitter:
    """Finds where each element ends, in one pass and with the memory of one element."""

    def __init__(self, file: Readable, spend: Callable[[int], None]) -> None:
        self._file = file
        self._spend = spend
        self._buffer = b""
        self._at = 0  # how far the buffer is read
        self._start = 0  # where the element starts in the buffer
        self._problem: Problem | None = None  # of the element being read

    def elements(self) -> Iterator[bytes | NotImportable]:
        first = self._first_byte()
        if first == b"{":
            yield from self._separate(outer=0)
        elif first == b"[":
            self._at += 1
            self._start = self._at
            yield from self._separate(outer=1)
        else:
            raise NotJson

    def _separate(self, outer: int) -> Iterator[bytes | NotImportable]:
        """Yield what is between the commas at this depth."""
        depth = outer
        signs = 0
        while (sign := self._next_sign()) is not None:
            signs += 1
            if signs > MAX_SIGNS:
                self._drop(Problem.TOO_LARGE)
                if signs > MAX_SKIPPED_SIGNS:
                    break
            if sign in b"{[":
                depth += 1
                if depth > MAX_DEPTH:
                    self._drop(Problem.TOO_DEEP)
            elif sign in b"}]":
                depth -= 1
            is_end = depth == outer - 1 if outer else depth == 0
            if is_end or (sign == b"," and depth == outer):
                self._spend(signs)
                signs = 0
                end = self._at if is_end and not outer else self._at - 1
                raw = self._buffer[self._start : end].strip(SPACE)
                problem = self._problem
                self._problem = None
                self._start = self._at
                if problem is not None:
                    yield NotImportable(problem)
                elif raw:
                    yield raw
            if is_end:
                return
        self._spend(signs)
        if self._problem in {Problem.TOO_LARGE, Problem.TOO_DEEP}:
            yield NotImportable(self._problem)
            return
        # The file ends early, for example because a download was cut off.
        if self._problem or self._buffer[self._start :].strip(SPACE):
            yield NotImportable(Problem.BROKEN)

    def _next_sign(self) -> bytes | None:
        """Return the next bracket or comma outside strings; None at the end of the file."""
        while True:
            sign = STRUCTURE.search(self._buffer, self._at)
            if sign is None:
                self._at = len(self._buffer)
                if not self._read():
                    return None
                continue
            self._at = sign.end()
            if sign[0] != b'"':
                return sign[0]
            if not self._skip_string():
                return None

    def _skip_string(self) -> bool:
        """Move behind the string's end; return False if the file ends before it."""
        while True:
            end = STRING_PART.match(self._buffer, self._at)
            self._at = end.end() if end else self._at
            if self._buffer[self._at : self._at + 1] == b'"':
                self._at += 1
                return True
            if not self._read():
                return False

    def _read(self) -> bool:
        """Read on, and forget what belongs to no element any more."""
        if len(self._buffer) - self._start > MAX_ELEMENT_BYTES:
            self._drop(Problem.TOO_LARGE)
        if self._problem is not None:
            self._start = self._at
        element = self._buffer[self._start :]
        self._buffer = b""
        self._at -= self._start
        self._start = 0
        # In growing pieces, because what is left is copied each time.
        chunk = self._file.read(min(max(CHUNK_BYTES, len(element)), MAX_PIECE_BYTES))
        self._buffer = element + chunk
        return bool(chunk)

    def _drop(self, problem: Problem) -> None:
        self._problem = self._problem or problem

    def _first_byte(self) -> bytes:
        while True:
            content = self._buffer.removeprefix(BOM).lstrip(SPACE)
            if content and not BOM.startswith(content):
                self._start = len(self._buffer) - len(content)
                self._at = self._start
                return content[:1]
            chunk = self._file.read(CHUNK_BYTES)
            if not chunk:
                return b""
            self._buffer += chunk
