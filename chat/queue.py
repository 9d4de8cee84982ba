"""Messages that wait until the run before them is over.

Whoever changes what waits in a session holds the session's row, so that two who do it at once,
in two tabs or in two processes, do it one after the other.
"""

from django.db import transaction
from django.db.models import Exists, Max, Min, OuterRef

from agents.models import Run
from chat.models import ChatSession, Message

MOST = 10


class Full(Exception):
    """There are as many messages waiting in this session as there may be."""


def hold(session: ChatSession) -> bool:
    """Nobody else changes it until this transaction is over; False where it is gone."""
    return ChatSession.objects.select_for_update().filter(pk=session.pk).first() is not None


def add(session: ChatSession, **message) -> Message:
    """A message at the end of the queue."""
    queued = session.messages.queued()
    if queued.count() >= MOST:
        raise Full
    last = queued.aggregate(Max("place"))["place__max"] or 0
    return Message.objects.create(session=session, place=last + 1, **message)


def put_first(session: ChatSession, user, pk: int | None) -> bool:
    """Whether it was there, and this person's, to be put before the others."""
    with transaction.atomic():
        hold(session)
        first = session.messages.queued().aggregate(Min("place"))["place__min"] or 0
        return _mine(session, user, pk).update(place=first - 1) == 1


def withdraw(session: ChatSession, user, pk: int | None) -> str | None:
    """Take it out; give the text, or None where it was not there, or not this person's."""
    with transaction.atomic():
        hold(session)
        message = _mine(session, user, pk).first()
        if message is not None:
            message.delete()
    return message and message.text


def clear(session: ChatSession) -> None:
    session.messages.queued().delete()


def take_up(message: Message, run: Run) -> Message:
    """The same message, answered by this run from now on.

    Its number is its place in the conversation, and that is at the end, whenever it was typed.
    """
    message.delete()
    message.pk, message.run, message.place = None, run, None
    message.save(force_insert=True)
    return message


def free(run: Run | None = None) -> list[ChatSession]:
    """Sessions in which something waits and nothing lives: all, or that of this run."""
    said = Message.objects.filter(session=OuterRef("session"))
    waiting = Message.objects.queued().exclude(Exists(said.filter(run__status__in=Run.LIVE)))
    if run is not None:
        waiting = waiting.filter(Exists(said.filter(run=run)))
    return list(ChatSession.objects.filter(pk__in=waiting.order_by().values("session")))


def _mine(session: ChatSession, user, pk: int | None):
    return Message.objects.for_user(user).queued().filter(session=session, pk=pk)
