"""Deletes single messages: hidden at once, restorable for a while, then erased by the server.

Deleted messages move to a deleted chat of their own, which is erased like any other one. It
remembers where they were.
"""

from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import recently_deleted
from agents.access.recently_deleted import CannotRestore, Restored
from agents.engine.text import shorten_line
from agents.models import HiddenTopic, HistorySummary, OutsideTextTopic, Run
from agents.runs import pubsub
from chat.attachments import binding
from chat.models import ChatSession, Message

from . import branches, deletion, session_state

MAX_TITLE_CHARS = 100


class DeletedMessages(deletion.DeletedChats):
    """Messages that were deleted together."""

    name = "message"
    label = gettext_lazy("Message")
    plural = gettext_lazy("Messages")

    def deleted(self) -> QuerySet[ChatSession]:
        deleted = ChatSession.objects.exclude(deleted_at=None)
        return deleted.filter(options__has_key=ChatSession.TAKEN_FROM)

    def restorable_by(self, user: User) -> QuerySet[ChatSession]:
        chats = {
            removal.pk: removal.options[ChatSession.TAKEN_FROM]["chat"]
            for removal in self.deleted().filter(user=user)
        }
        writable = ChatSession.objects.writable_by(user).filter(pk__in=chats.values())
        writable_pks = set(writable.values_list("pk", flat=True))
        return self.deleted().filter(pk__in=[pk for pk in chats if chats[pk] in writable_pks])

    def title(self, row: ChatSession) -> str:
        texts = list(row.messages.order_by("pk").values_list("text", flat=True))
        title = shorten_line(texts[0], MAX_TITLE_CHARS) if texts else row.title
        return f"{title} (+{len(texts) - 1})" if len(texts) > 1 else title

    def restore(self, row: ChatSession, user: User, name: str = "") -> Restored:
        """Put messages back where they were."""
        positions: dict[str, Any] = row.options[ChatSession.TAKEN_FROM]
        session = ChatSession.objects.writable_by(user).filter(pk=positions["chat"]).first()
        if session is None or not session_state.lock(session):
            raise CannotRestore(_("This chat no longer exists."))
        try:
            with transaction.atomic():
                moved = list(row.messages.values_list("pk", flat=True))
                deletion.show_topics(row)
                if OutsideTextTopic.objects.filter(
                    topic=row.topic
                ).exists():  # its run ended there
                    OutsideTextTopic.objects.mark(session.topic)
                Run.objects.filter(message__in=moved).update(topic=session.topic)
                Message.objects.filter(pk__in=moved).update(session=session)
                binding.show(session, moved)
                for child, parent in positions["children"]:  # what was sent since is a branch
                    Message.objects.filter(pk=child, session=session).update(parent=parent)
                for run, origin, step in positions["origins"]:
                    Run.objects.filter(pk=run).update(origin=origin, origin_step=step)
                forget_summaries(session)
                HiddenTopic.objects.filter(topic=row.topic).delete()
                row.delete()
        except IntegrityError as error:  # its run hasn't stopped yet, and another one is live
            raise CannotRestore(_("An answer is being written. Try again later.")) from error
        branches.show(session, user, positions["messages"][0])
        publish = async_to_sync(pubsub.publish)
        # Pages look again.
        transaction.on_commit(partial(publish, session.topic, "messages.deleted"))
        return Restored(url=reverse("chat:session", args=[session.pk]))


def discard(session: ChatSession, user: User, messages: set[int]) -> ChatSession:
    """Take messages with their runs out of a chat; return the chat that has them now.

    They count towards their authors' limits until they are erased.
    """
    # Where the messages are, and what follows or continues them.
    following = Message.objects.filter(parent__in=messages).exclude(pk__in=messages)
    continuations = Run.objects.filter(origin__message__in=messages, message__isnull=False)
    continuations = continuations.exclude(message__in=messages)
    positions = {
        "chat": session.pk,
        "messages": sorted(messages),
        "children": list(following.values_list("pk", "parent_id")),
        "origins": list(continuations.values_list("pk", "origin", "origin_step")),
    }
    forget_summaries(session)
    branches.detach(session, messages)
    removal = ChatSession.objects.create(
        user=user,
        title=session.title,
        is_temporary=session.is_temporary,
        deleted_at=timezone.now(),
        options={ChatSession.TAKEN_FROM: positions},
    )
    # Its retention period ends when the chat's does.
    ChatSession.objects.filter(pk=removal.pk).update(updated_at=session.updated_at)
    # Continuations that stay have their own events, and would be erased with their origin.
    continuations.update(origin=None, origin_step=None)
    Run.objects.filter(message__in=messages).update(topic=removal.topic)
    binding.hide(removal, messages)
    Message.objects.filter(pk__in=messages).update(session=removal)
    deletion.hide_topics(removal)
    return removal


def forget_summaries(session: ChatSession) -> None:
    """Have older turns summarized again, because a summary may have what was changed."""
    HistorySummary.objects.filter(run__message__session=session).delete()


recently_deleted.register(DeletedMessages())
