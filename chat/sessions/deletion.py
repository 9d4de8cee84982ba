"""Deletes chats: invisible at once, restorable for a while, then erased by the server."""

import time
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents import runs
from agents.access import recently_deleted
from agents.access.recently_deleted import Kind, Restored
from agents.db import database
from agents.db.installation import configured
from agents.models import Collection as DocumentCollection
from agents.models import HiddenTopic, OutsideTextTopic, Run
from agents.runs import pubsub
from chat.models import ChatSession

from . import batched_delete, rights, session_state

UNDO_SECONDS = 10  # how long pages offer it
# A slow network must not make it too late.
TEMPORARY_PERIOD = timedelta(seconds=60)
PAUSE_SECONDS = 0.02


class DeletedChats(Kind):
    name = "chat"
    label = _("Chat")
    plural = _("Chats")
    model = ChatSession
    deleted_by = "user"

    def deleted(self) -> QuerySet[ChatSession]:
        return super().deleted().exclude(options__has_key=ChatSession.TAKEN_FROM)

    def restorable_by(self, user: User) -> QuerySet[ChatSession]:
        return self.deleted().filter(user=user)

    def period(self) -> timedelta:
        """Chats aren't kept for longer because they were deleted."""
        days = configured.RUN_RETENTION_DAYS.value
        return min(super().period(), timedelta(days=days or super().period().days))

    def is_over(self, moment: datetime) -> Q:
        is_old = Q(is_temporary=True, deleted_at__lt=moment - TEMPORARY_PERIOD)
        return super().is_over(moment) | is_old

    def restore(self, row: ChatSession, user: User, name: str = "") -> Restored:
        ChatSession.objects.filter(pk=row.pk).update(deleted_at=None)
        show_topics(row)
        watcher_pks = watchers(row)
        transaction.on_commit(lambda: announce(watcher_pks))
        return Restored(url=reverse("chat:session", args=[row.pk]))

    def erase(self, row: ChatSession) -> None:
        """Delete a chat in batches, with its messages, runs, traces and MCP servers' files."""
        topics = topics_of(row)
        while batched_delete.delete_session_batch(row):
            time.sleep(PAUSE_SECONDS)
        HiddenTopic.objects.filter(topic__in=topics).delete()

    def erase_now(self, row: ChatSession, user: User) -> None:
        # There may be much in it, and the user doesn't wait for it.
        batched_delete.mark_over(ChatSession.objects.filter(pk=row.pk))


async def delete(session: ChatSession) -> None:
    """Hide a chat from everybody, stop its run and disconnect its pages."""

    def hide() -> set[int]:
        with transaction.atomic():
            if not session_state.lock(session):
                return set()
            ChatSession.objects.filter(pk=session.pk).update(deleted_at=timezone.now())
            hide_topics(session)
            return watchers(session)

    watcher_pks = await database.run(hide)
    run = await database.run(session_state.live_run, session)
    if run is not None:
        await runs.stop(run)
    await pubsub.publish(session.topic, "people.changed")
    await announce_in_background(watcher_pks)


def delete_permanently(session: ChatSession) -> None:
    """Delete a chat at once with its messages, runs, traces and MCP servers' files.

    It is hidden first and then erased in batches; after a crash, the periodic check goes on.
    """
    with transaction.atomic():
        if not session_state.lock(session):
            return
        batched_delete.mark_over(ChatSession.objects.filter(pk=session.pk))
        hide_topics(session)
    recently_deleted.kinds["chat"].erase(session)


def announce(people: Collection[int]) -> None:
    """Update these people's lists on every open page."""
    async_to_sync(announce_in_background)(people)


async def announce_in_background(people: Collection[int]) -> None:
    """Do the same outside of a request."""
    for person in people:
        await pubsub.publish(pubsub.person_topic(person), "chats.changed")


def watchers(session: ChatSession) -> set[int]:
    """Return the people whose list has this chat."""
    if not session.is_shared:
        return {session.user_id}
    return {session.user_id, *rights.guests(session).values_list("user", flat=True)}


def hide_topics(session: ChatSession) -> None:
    """Hide the runs of a chat, their reruns and its files from everybody."""
    for topic in topics_of(session):
        HiddenTopic.objects.update_or_create({"user": None}, topic=topic)
    recently_deleted.mark(DocumentCollection.objects.filter(topic=session.topic), None)


def topics_of(session: ChatSession) -> set[str]:
    """Return the topics of the chat and of its runs' reruns, which are erased with it."""
    # A continuation has a message, and so the topic of the chat it is in.
    reruns = Run.objects.filter(message=None).only("topic")
    topics = {session.topic}
    generation = set(reruns.filter(origin__topic=session.topic))
    while generation:
        topics |= {run.topic for run in generation}
        generation = set(reruns.filter(origin__in=generation))
    return topics


def show_topics(chat: ChatSession) -> None:
    """Show the runs of a restored chat, their reruns and its files again."""
    DocumentCollection.objects.filter(topic=chat.topic).update(deleted_at=None)
    hidden = HiddenTopic.objects.filter(topic__in=topics_of(chat))
    if chat.is_temporary:
        hidden.update(user=chat.user)
    else:
        hidden.delete()


def forget_outside_text(instance: ChatSession, **_signal: Any) -> None:
    """Delete the mark of a chat that no longer exists."""
    OutsideTextTopic.objects.filter(topic=instance.topic).delete()


recently_deleted.register(DeletedChats())
