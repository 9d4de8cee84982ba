"""What users do with queued messages, on every page of the chat at once."""

from django.contrib.auth.models import User
from django.db import transaction

from agents import runs
from agents.db import database
from agents.models import Run
from agents.runs import pubsub
from chat.models import ChatSession
from chat.sessions import session_state

from . import dispatching, queue


async def send_now(session: ChatSession, user: User, pk: int | None) -> bool:
    """Stop the live run and answer this message next.

    Returns False if there is no such message.
    """

    def move_to_front() -> tuple[bool, Run | None]:
        with transaction.atomic():
            return queue.move_to_front(session, user, pk), session_state.live_run(session)

    is_queued, run = await database.run(move_to_front)
    if not is_queued:
        return False
    if run is not None:
        await runs.stop(run)
    await pubsub.publish(session.topic, "queue.changed")
    await dispatching.answer_next(session)
    return True


async def withdraw(session: ChatSession, user: User, pk: int | None) -> str | None:
    """Withdraw a queued message; return its text to its author, or None if there is none."""
    text = await database.run(queue.withdraw, session, user, pk)
    if text is not None:
        await pubsub.publish(session.topic, "queue.changed")
    return text
