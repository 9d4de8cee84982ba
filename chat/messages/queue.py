"""Messages that wait until the current run has ended.

Changes lock the chat's row, so that two tabs or processes make them one after the other.
"""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, Max, Min, OuterRef, QuerySet
from django.utils.translation import gettext as _

from agents.access import api_keys
from agents.db.compiled_queries import compiled_query
from agents.models import ApiKey, Run
from chat import attachments
from chat.errors import MessageRejected
from chat.models import ChatSession, Message
from chat.sessions import session_state

from . import mentions

MAX_QUEUED = 10
KEY_OPTION = "api_key"  # among the options of a message that a program has queued


def queued_messages(session: ChatSession) -> list[Message]:
    """Return the queued messages of a chat, the next one first."""
    return _queued_messages(session.pk)


@compiled_query
def _queued_messages(session: int) -> QuerySet[Message]:
    return Message.objects.queued().filter(session=session).select_related("author__profile")


def next_place(session: ChatSession) -> int:
    """Return the place after the last queued message; raise MessageRejected at the limit."""
    queued = session.messages.queued()
    if queued.count() >= MAX_QUEUED:
        raise MessageRejected(
            _("%(most)d messages are already queued. Remove one or wait for an answer.")
            % {"most": MAX_QUEUED}
        )
    return (queued.aggregate(Max("place"))["place__max"] or 0) + 1


def program_options() -> dict[str, int]:
    """Return what a queued message notes of the program that sends it here."""
    key = api_keys.current()
    return {} if key is None else {KEY_OPTION: key.pk}


def api_key_of(message: Message) -> ApiKey | None:
    """Return the key with which a program has queued this message."""
    pk = message.options.get(KEY_OPTION)
    return None if pk is None else ApiKey.objects.filter(pk=pk).first()


def move_to_front(session: ChatSession, user: User, pk: int | None) -> bool:
    """Move a message to the front; return whether it was there and the user's."""
    if pk is None:
        return False
    with transaction.atomic():
        session_state.lock(session)
        first = session.messages.queued().aggregate(Min("place"))["place__min"] or 0
        mine = Message.objects.for_user(user).queued().filter(session=session, pk=pk)
        return mine.update(place=first - 1) == 1


def withdraw(session: ChatSession, user: User, pk: int | None) -> str | None:
    """Remove a message; return its text if it is theirs, or None if there is none."""
    if pk is None:
        return None
    with transaction.atomic():
        session_state.lock(session)
        theirs = Message.objects.withdrawable_by(user).queued()
        message = theirs.filter(session=session, pk=pk).first()
        if message is None:
            return None
        if message.author_id == user.pk:
            attachments.detach(message)  # they return to the composer with the text
        message.delete()
    if message.author_id != user.pk:
        return ""
    is_mention = message.is_mention
    return mentions.restore(message.text, message.agent_name) if is_mention else message.text


def clear(session: ChatSession) -> None:
    with transaction.atomic():
        session_state.lock(session)
        session.messages.queued().delete()


def drop_inactive(session: ChatSession) -> None:
    """Drop queued messages of deactivated users and of programs whose key was revoked."""
    for message in queued_messages(session):
        key = api_key_of(message)
        is_of_program = KEY_OPTION in message.options
        has_ended = is_of_program and (key is None or key.revoked_at is not None)
        if has_ended or not message.author.is_active:
            message.delete()


def attach_run(message: Message, run: Run) -> Message:
    """Attach the message to its run.

    It gets a new id, because ids give the order of the conversation. What was queued behind it
    on the same branch will follow it.
    """
    created_at = message.created_at
    parent_id = message.parent_id
    attachment_ids = attachments.detach(message)
    message.delete()
    message.pk = None
    message.run = run
    message.place = None
    message.save(force_insert=True)
    attachments.rebind(attachment_ids, message)
    Message.objects.filter(pk=message.pk).update(created_at=created_at)
    queued_behind = Message.objects.queued().filter(
        session=message.session_id, parent=parent_id
    )
    queued_behind.update(parent=message)
    message.created_at = created_at
    return message


def ready_sessions(run: Run | None = None) -> list[ChatSession]:
    """Return chats with queued messages and no live run: all, or this run's."""
    return _all_ready() if run is None else _ready_after(run.pk)


@compiled_query
def _all_ready() -> QuerySet[ChatSession]:
    return _sessions_with(_ready_messages())


@compiled_query
def _ready_after(run: int) -> QuerySet[ChatSession]:
    messages = Message.objects.filter(session=OuterRef("session"), run=run)
    return _sessions_with(_ready_messages().filter(Exists(messages)))


def _ready_messages() -> QuerySet[Message]:
    """Return queued messages of chats without a live run."""
    live_messages = Message.objects.filter(
        session=OuterRef("session"), run__status__in=Run.LIVE
    )
    return Message.objects.queued().exclude(Exists(live_messages))


def _sessions_with(messages: QuerySet[Message]) -> QuerySet[ChatSession]:
    present = ChatSession.objects.present()
    return present.filter(pk__in=messages.order_by().values("session"))
