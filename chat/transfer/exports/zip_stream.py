"""Writes a ZIP in pieces, so that it is never in memory as a whole."""

import zipfile
from collections.abc import Iterable, Iterator
from typing import IO, cast

from django.utils import timezone

File = tuple[str, Iterator[str] | Iterator[bytes]]


def archive(files: Iterable[File]) -> Iterator[bytes]:
    """Yield a ZIP of these files in pieces."""
    buffer = _ChunkBuffer()
    stream = cast(IO[bytes], buffer)  # ZipFile only writes to it
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as zip_file:
        for name, pieces in files:
            info = zipfile.ZipInfo(name, timezone.localtime().timetuple()[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            with zip_file.open(info, "w", force_zip64=True) as entry:
                for piece in pieces:
                    if isinstance(piece, str):
                        piece = piece.encode(errors="replace")
                    entry.write(piece)
                    yield from buffer.drain()
    yield from buffer.drain()


class _ChunkBuffer:
    """Written bytes that aren't sent yet."""

    def __init__(self) -> None:
        self.written = bytearray()

    def write(self, piece: bytes) -> int:
        self.written += piece
        return len(piece)

    def flush(self) -> None:
        """Do nothing: there is no buffer to flush."""

    def drain(self) -> Iterator[bytes]:
        if self.written:
            yield bytes(self.written)
            self.written.clear()
