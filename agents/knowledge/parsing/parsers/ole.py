"""Reads compound files, the container of Outlook messages and old Office files."""

import struct
from collections.abc import Iterator

from .archive import DAMAGED
from .values import UnreadableDocument, WorkLimit

HEADER = struct.Struct("<8s16xHHHHH6xIIIIIIIII")
ENTRY = struct.Struct("<64sHBBIII16x4x8x8xIQ")
FREE = 0xFFFFFFFA  # and above: marks, no sectors
MAX_ENTRIES = 100_000
NO_ENTRY = 0xFFFFFFFF
STREAM = 2
ROOT = 5
SECTOR_STEPS = 2


class CompoundFile:
    """The streams of a compound file by their path."""

    def __init__(self, data: bytes, work: WorkLimit) -> None:
        try:
            self._read(data, work)
        except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
            raise UnreadableDocument(DAMAGED) from error

    def _read(self, data: bytes, work: WorkLimit) -> None:
        self._data = data
        self._work = work
        head = HEADER.unpack_from(data)
        sector_shift = head[4]
        mini_shift = head[5]
        first_directory = head[8]
        mini_cutoff = head[10]
        first_mini = head[11]
        first_index = head[13]
        index_count = head[14]
        if sector_shift not in (9, 12) or mini_shift != 6:
            raise UnreadableDocument(DAMAGED)
        self._size = 1 << sector_shift
        self._cutoff = mini_cutoff
        per_sector = self._size // 4
        tables = [number for number in struct.unpack_from("<109I", data, 76) if number < FREE]
        for _ in range(min(index_count, len(data) // self._size + 1)):
            if first_index >= FREE:
                break
            *numbers, first_index = struct.unpack(f"<{per_sector}I", self._sector(first_index))
            tables += [number for number in numbers if number < FREE]
        table = b"".join(self._sector(n) for n in tables[: len(data) // self._size + 1])
        self._next = struct.unpack(f"<{len(table) // 4}I", table)
        mini_table = b"".join(map(self._sector, self._chain(first_mini, self._next)))
        self._next_mini = struct.unpack(f"<{len(mini_table) // 4}I", mini_table)
        directory = b"".join(map(self._sector, self._chain(first_directory, self._next)))
        count = min(len(directory) // 128, MAX_ENTRIES)
        self._entries = [ENTRY.unpack_from(directory, number * 128) for number in range(count)]
        if not self._entries or self._entries[0][2] != ROOT:
            raise UnreadableDocument(DAMAGED)
        root = self._entries[0]
        self._mini = b"".join(map(self._sector, self._chain(root[7], self._next)))
        self._streams = dict(self._walk())

    def names(self) -> list[str]:
        return list(self._streams)

    def read(self, name: str) -> bytes:
        """Return a stream, or nothing if there is none."""
        if name not in self._streams:
            return b""
        entry = self._entries[self._streams[name]]
        size = min(entry[8] & 0xFFFFFFFF, len(self._data))
        if entry[8] >= self._cutoff:
            return b"".join(map(self._sector, self._chain(entry[7], self._next)))[:size]
        chain = self._chain(entry[7], self._next_mini)
        return b"".join(self._mini[number * 64 : number * 64 + 64] for number in chain)[:size]

    def _sector(self, number: int) -> bytes:
        start = (number + 1) * self._size
        return self._data[start : start + self._size].ljust(self._size, b"\0")

    def _chain(self, number: int, following: tuple[int, ...]) -> Iterator[int]:
        """Yield a stream's sectors; a chain that comes back to itself ends."""
        for _ in range(len(following)):
            if number >= FREE:
                return
            if number >= len(following):
                raise UnreadableDocument(DAMAGED)
            self._work.spend(SECTOR_STEPS)
            yield number
            number = following[number]

    def _walk(self) -> Iterator[tuple[str, int]]:
        """Yield the path of each stream and its entry, each once."""
        visited: set[int] = set()
        pending = [(self._entries[0][6], "")]
        while pending:
            number, folder = pending.pop()
            if number in visited or number >= len(self._entries):
                continue
            visited.add(number)
            raw, length, kind, _color, left, right, child, _start, _size = self._entries[number]
            name = raw[: max(min(length, 64) - 2, 0)].decode("utf-16-le", "replace")
            pending += [(left, folder), (right, folder)]
            if kind == STREAM:
                yield f"{folder}{name}", number
            elif child != NO_ENTRY and folder.count("/") < 10:
                pending.append((child, f"{folder}{name}/"))
