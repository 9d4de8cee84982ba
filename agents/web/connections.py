"""Tracks and limits each user's open sockets in this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agents.installation import configured

CloseConnection = Callable[[], None]

_open: dict[int, dict[str, CloseConnection]] = {}


class TooManySockets(Exception):
    """Raised when the user has the maximum number of open sockets."""


@contextmanager
def track_socket(person: int, page: str, close: CloseConnection) -> Iterator[None]:
    """Count a socket while it is open.

    A reconnecting page replaces its former socket, which may have been lost without notice:
    that one is closed.
    """
    mine = _open.setdefault(person, {})
    if (former := mine.pop(page, None)) is not None:
        former()
    elif len(mine) >= configured.SOCKETS.value:
        raise TooManySockets
    mine[page] = close
    try:
        yield
    finally:
        if mine.get(page) is close:
            del mine[page]
        # A replaced socket may end late, after the user has left and returned.
        if not mine and _open.get(person) is mine:
            del _open[person]
