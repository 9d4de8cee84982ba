"""Slots for children that many users share."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# Each one waits in a request's thread, which has a connection to the database.
MAX_WAITING_PER_OWNER = 20


class NoFreeSlot(TimeoutError):
    """Raised when too many others are waiting; nothing was started."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ticket:
    owner: Hashable
    called: threading.Event = field(default_factory=threading.Event)


class FairSlots:
    """At most `total` at once, at most `per_owner` of one owner, and owners take turns."""

    def __init__(self, total: int, *, per_owner: int) -> None:
        self.total = total
        self.per_owner = per_owner
        self._lock = threading.Lock()
        self._running: Counter[Hashable] = Counter()
        self._waiting: list[_Ticket] = []
        self._turns: dict[Hashable, int] = {}  # of who is running or waiting, by number

    @contextmanager
    def slot(self, owner: Hashable, seconds: float) -> Iterator[None]:
        """Wait for the owner's turn; raise NoFreeSlot if it doesn't come in time.

        It won't if many others of the same owner are waiting, so that is raised at once.
        """
        ticket = _Ticket(owner)
        with self._lock:
            if (
                sum(waiting.owner == owner for waiting in self._waiting)
                >= MAX_WAITING_PER_OWNER
            ):
                raise NoFreeSlot
            self._waiting.append(ticket)
            self._call_next()
        try:
            if not ticket.called.wait(seconds):
                raise NoFreeSlot
            yield
        finally:
            with self._lock:
                if ticket.called.is_set():
                    self._running[owner] -= 1
                    if not self._running[owner]:
                        del self._running[owner]
                    active = {*self._running, *(waiting.owner for waiting in self._waiting)}
                    self._turns = {
                        key: turn for key, turn in self._turns.items() if key in active
                    }
                else:
                    self._waiting.remove(ticket)
                self._call_next()

    def _call_next(self) -> None:
        """Wake only whose turn it is: a thousand that look for it themselves block us."""
        while ticket := self._next():
            self._waiting.remove(ticket)
            self._running[ticket.owner] += 1
            self._turns[ticket.owner] = max(self._turns.values(), default=0) + 1
            ticket.called.set()

    def _next(self) -> _Ticket | None:
        """Return the ticket whose turn it is, if a slot is free."""
        if self._running.total() >= self.total:
            return None
        running = self._running
        return min(
            (ticket for ticket in self._waiting if running[ticket.owner] < self.per_owner),
            key=lambda ticket: (running[ticket.owner], self._turns.get(ticket.owner, 0)),
            default=None,
        )
