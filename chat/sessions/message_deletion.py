"""Deletes single messages: hidden at once, restorable for a moment, then erased by the server.

Deleted messages move to a deleted chat of their own, which is erased like any other one. It
remembers where they were.
"""

from collections.abc import Collection, Iterable
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.models import HiddenTopic, HistorySummary, OutsideTextTopic, Run
from agents.runs import pubsub
from chat.attachments import binding
from chat.models import ChatSession, Message

from . import branches, deletion, session_state


def discard(session: ChatSession, user: User, messages: set[int]) -> ChatSession:
    """Take messages with their runs out of a chat; return the chat that has them now.

    They count towards their authors' limits until they are erased.
    """
    columns = {"user": user, "title": session.title, "is_temporary": session.is_temporary}
    options = {deletion.TAKEN_FROM: _positions(session, messages)}
    forget_summaries(session)
    branches.detach(session, messages)
    removal = ChatSession.objects.create(deleted_at=timezone.now(), options=options, **columns)
    # Continuations that stay have their own events, and would be erased with their origin.
    _continuations(messages).update(origin=None, origin_step=None)
    Run.objects.filter(message__in=messages).update(topic=removal.topic)
    binding.hide(removal, messages)
    Message.objects.filter(pk__in=messages).update(session=removal)
    deletion.hide_topics(removal)
    return removal


def restore(user: User, removals: Iterable[int]) -> list[int]:
    """Undo deletions of messages; return those that could be undone."""
    chats = {pk: _restore(user, pk) for pk in removals}
    for chat in filter(None, chats.values()):
        async_to_sync(pubsub.publish)(chat.topic, "messages.deleted")  # pages look again
    return [pk for pk, chat in chats.items() if chat is not None]


def _restore(user: User, pk: int) -> ChatSession | None:
    """Put messages back where they were; return their chat, or None if it's too late."""
    removal = deletion.recently_deleted(user).filter(pk=pk).first()
    positions: dict[str, Any] = removal.options.get(deletion.TAKEN_FROM, {}) if removal else {}
    chats = ChatSession.objects.writable_by(user)
    session = chats.filter(pk=positions["chat"]).first() if positions else None
    if removal is None or session is None:
        return None
    try:
        with transaction.atomic():
            if not session_state.lock(session) or not _lock_removal(user, pk):
                return None
            _put_back(session, removal, positions)
    except IntegrityError:  # its run hasn't stopped yet, and another one is live
        return None
    branches.show(session, user, positions["messages"][0])
    return session


def forget_summaries(session: ChatSession) -> None:
    """Have older turns summarized again, because a summary may have what was changed."""
    HistorySummary.objects.filter(run__message__session=session).delete()


def _positions(session: ChatSession, messages: Collection[int]) -> dict[str, Any]:
    """Return where the messages are, and what follows or continues them."""
    following = Message.objects.filter(parent__in=messages).exclude(pk__in=messages)
    origins = _continuations(messages).values_list("pk", "origin", "origin_step")
    return {
        "chat": session.pk,
        "messages": sorted(messages),
        "children": list(following.values_list("pk", "parent_id")),
        "origins": list(origins),
    }


def _continuations(messages: Collection[int]) -> QuerySet[Run]:
    stays = Run.objects.filter(origin__message__in=messages, message__isnull=False)
    return stays.exclude(message__in=messages)


def _lock_removal(user: User, pk: int) -> bool:
    removal = deletion.recently_deleted(user).filter(pk=pk)
    return bool(removal.select_for_update().values_list("pk"))


def _put_back(session: ChatSession, removal: ChatSession, positions: dict[str, Any]) -> None:
    moved = list(removal.messages.values_list("pk", flat=True))
    deletion.show_topics(removal)
    if OutsideTextTopic.objects.filter(topic=removal.topic).exists():  # its run ended there
        OutsideTextTopic.objects.mark(session.topic)
    Run.objects.filter(message__in=moved).update(topic=session.topic)
    Message.objects.filter(pk__in=moved).update(session=session)
    binding.show(session, moved)
    _reattach(session, positions["children"])
    for run, origin, step in positions["origins"]:
        Run.objects.filter(pk=run).update(origin=origin, origin_step=step)
    forget_summaries(session)
    HiddenTopic.objects.filter(topic=removal.topic).delete()
    removal.delete()


def _reattach(session: ChatSession, children: Iterable[tuple[int, int]]) -> None:
    """Attach what followed to the restored messages again; what was sent since is a branch."""
    for child, parent in children:
        Message.objects.filter(pk=child, session=session).update(parent=parent)
