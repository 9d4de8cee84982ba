"""What a source's place is: it lists its files and reads each of them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from agents.models import DocumentSource


class PlaceUnreadable(Exception):
    """Raised when a place can't be listed or read; its text is a sentence."""


class FileUnreadable(Exception):
    """Raised when one file can't be read now, with a sentence; the others can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceFile:
    """A file of a place: with another version it has other content."""

    key: str
    version: str
    name: str  # with its folders
    size: int = 0  # if that is known


class Place(Protocol):
    """A place that is open for one check."""

    @property
    def version(self) -> str:
        """What changes with any of the files; empty if the place has nothing like that."""

    def files(self) -> Iterator[PlaceFile]:
        """Yield the files; raise PlaceUnreadable."""

    def read(self, file: PlaceFile) -> Iterable[bytes]:
        """Return a file's content; raise FileUnreadable or PlaceUnreadable."""


# Called at least every few seconds during long work; it raises if the check has to end.
Heartbeat = Callable[[], None]
OpenPlace = Callable[[DocumentSource, Heartbeat], AbstractContextManager[Place]]
