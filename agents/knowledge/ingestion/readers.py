"""Readers of files that aren't documents, such as recordings. Other packages provide them."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from agents.knowledge.parsing import ParsedDocument

Progress = Callable[[int, int], None]


class Reader(Protocol):
    """Reads a file as a document; raises UnreadableDocument. `progress` can raise, too.

    A private file is read on this server only.
    """

    def __call__(
        self,
        path: Path,
        name: str,
        mime_type: str,
        progress: Progress,
        *,
        is_private: bool = False,
    ) -> ParsedDocument: ...


_readers: dict[str, Reader] = {}


def register_reader(kind: str, reader: Reader) -> None:
    """Have files of a kind, such as `audio`, read by this reader."""
    _readers[kind] = reader


def find(mime_type: str) -> Reader | None:
    """Return the reader of a file's kind; documents have none."""
    return _readers.get(mime_type.partition("/")[0])
