"""Tracks and limits each user's open sockets in this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agents.db.installation import configured

CloseConnection = Callable[[], None]

_open: dict[int | str, dict[str, CloseConnection]] = {}


class TooManySockets(Exception):
    """Raised when the user has the maximum number of open sockets."""


@contextmanager
def track_socket(
    person: int | str, page: str, close: CloseConnection, max_open: int | None = None
) -> Iterator[None]:
    """Count a socket while it is open.

    A reconnecting page replaces its former socket, which may have been lost without notice:
    that one is closed.
    """
    open_pages = _open.setdefault(person, {})
    if (close_former := open_pages.pop(page, None)) is not None:
        close_former()
    elif len(open_pages) >= (max_open or configured.SOCKETS.value):
        raise TooManySockets
    open_pages[page] = close
    try:
        yield
    finally:
        if open_pages.get(page) is close:
            del open_pages[page]
        # A replaced socket may end late, after the user has left and returned.
        if not open_pages and _open.get(person) is open_pages:
            del _open[person]
