"""What users do with chats: reorder the queue, rename, delete; and a chat's status."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agents import runs
from agents.db import database
from agents.db.sanitize import sanitize_text
from agents.models import HiddenTopic, Run
from agents.runs import pubsub
from chat.models import ChatSession, Message
from chat.sessions import server_files, session_state

from . import queue, run_factory, submission


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """A chat's status: its live run, its queue, and why that is blocked."""

    live_run: int | None
    is_waiting: bool = False
    queued: tuple[Message, ...] = ()
    blocked_reason: str = ""

    @property
    def waits(self) -> tuple[Any, ...]:
        """The visible state of the queue."""
        return self.queued, self.blocked_reason, self.is_waiting


async def send_now(session: ChatSession, user: User, pk: int | None) -> bool:
    """Stop the live run and answer this message next.

    Returns False if there is no such message.
    """
    is_there, run = await database.run(_move_to_front, session, user, pk)
    if not is_there:
        return False
    if run is not None:
        await runs.stop(run)
    await pubsub.publish(session.topic, "queue.changed")
    await submission.answer_next(session)
    return True


async def withdraw(session: ChatSession, user: User, pk: int | None) -> str | None:
    """Withdraw a queued message; return its text to its author, or None if there is none."""
    text = await database.run(queue.withdraw, session, user, pk)
    if text is not None:
        await pubsub.publish(session.topic, "queue.changed")
    return text


def rename(session: ChatSession, title: str) -> None:
    title = " ".join(sanitize_text(title).split())[:80]
    if title:
        by = ChatSession.TitleSource.PERSON
        ChatSession.objects.filter(pk=session.pk).update(title=title, title_source=by)


def delete(session: ChatSession) -> None:
    """Delete a chat with its messages, runs, traces and MCP servers' files."""
    remove_files = partial(server_files.delete_for_chat, session.topic)
    with transaction.atomic():
        session_state.lock(session)
        Run.objects.filter(message__session=session).delete()
        HiddenTopic.objects.filter(topic=session.topic).delete()
        session.delete()
        transaction.on_commit(remove_files, robust=True)


def get_status(session: ChatSession, run: Run | None) -> SessionStatus:
    """Return the chat's status with this live run, or none."""
    queued = tuple(queue.queued_messages(session))
    return SessionStatus(
        live_run=None if run is None else run.pk,
        is_waiting=run is not None and run.is_waiting,
        queued=queued,
        blocked_reason=run_factory.blocked_reason(queued[0]) if queued and run is None else "",
    )


def _move_to_front(session: ChatSession, user: User, pk: int | None) -> tuple[bool, Run | None]:
    """Move a message to the front; return whether it exists, and the live run before it."""
    with transaction.atomic():
        return queue.move_to_front(session, user, pk), session_state.live_run(session)
