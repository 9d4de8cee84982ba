"""The sockets that each person has open in this process; there may be so many of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings

Close = Callable[[], None]

_open: dict[int, dict[str, Close]] = {}


class TooManySockets(Exception):
    """This person has as many open as they may."""


@contextmanager
def track_socket(person: int, page: str, close: Close) -> Iterator[None]:
    """Counted for as long as it is open.

    A page that comes back takes the place of its former socket, which the network may have
    lost without a word: that one is told to close.
    """
    mine = _open.setdefault(person, {})
    if (former := mine.pop(page, None)) is not None:
        former()
    elif len(mine) >= settings.PERSON_SOCKETS:
        raise TooManySockets
    mine[page] = close
    try:
        yield
    finally:
        if mine.get(page) is close:
            del mine[page]
        # One that was replaced may end late, when the person has come and gone since.
        if not mine and _open.get(person) is mine:
            del _open[person]
