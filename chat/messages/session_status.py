"""A chat's status: its live run, its queue, and why that is blocked."""

from dataclasses import dataclass
from typing import Any

from agents.models import Run
from chat.models import ChatSession, Message

from . import queue, run_factory


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """What the page of a chat shows of it."""

    live_run: int | None
    is_waiting: bool = False
    queued: tuple[Message, ...] = ()
    blocked_reason: str = ""

    @property
    def queue_state(self) -> tuple[Any, ...]:
        """The visible state of the queue."""
        return self.queued, self.blocked_reason, self.is_waiting


def get_status(session: ChatSession, run: Run | None) -> SessionStatus:
    """Return the chat's status with this live run, or none."""
    queued = tuple(queue.queued_messages(session))
    return SessionStatus(
        live_run=None if run is None else run.pk,
        is_waiting=run is not None and run.is_waiting,
        queued=queued,
        blocked_reason=run_factory.blocked_reason(queued[0]) if queued and run is None else "",
    )
