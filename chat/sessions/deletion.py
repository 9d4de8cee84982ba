"""Deletes chats: invisible at once, restorable for a moment, then erased by the server.

Nothing depends on the browser: the periodic check of any process erases what is due, also
after a crash.
"""

import logging
import time
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents import runs
from agents.db import database
from agents.db.periodic import periodic
from agents.models import HiddenTopic, OutsideTextTopic, Run
from agents.runs import pubsub
from chat.models import ChatSession

from . import batched_delete, rights, session_state

logger = logging.getLogger(__name__)

UNDO_SECONDS = 10  # how long pages offer it
UNDO_LIMIT = timedelta(seconds=60)  # a slow network must not make it too late
ERASE_AFTER = timedelta(seconds=90)  # later than that, so that nothing half erased comes back
POLL_SECONDS = 15.0
PAUSE_SECONDS = 0.02

TAKEN_FROM = "taken_from"  # in the options of a chat that only has deleted messages of another


async def delete(session: ChatSession) -> None:
    """Hide a chat from everybody, stop its run and disconnect its pages."""
    watcher_pks = await database.run(_hide, session)
    run = await database.run(session_state.live_run, session)
    if run is not None:
        await runs.stop(run)
    await pubsub.publish(session.topic, "people.changed")
    await announce_in_background(watcher_pks)


def restore(user: User, chats: Collection[int]) -> list[int]:
    """Undo the deletion of the user's chats; return those that could be restored."""
    restored, watcher_pks = _restore(user, chats)
    announce(watcher_pks)
    return restored


def delete_permanently(session: ChatSession) -> None:
    """Delete a chat at once with its messages, runs, traces and MCP servers' files.

    It is hidden first and then erased in batches; after a crash, the periodic check goes on.
    """
    with transaction.atomic():
        if not session_state.lock(session):
            return
        ChatSession.objects.filter(pk=session.pk).update(
            deleted_at=timezone.now() - ERASE_AFTER
        )
        hide_topics(session)
    _erase(session)


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


def _hide(session: ChatSession) -> set[int]:
    with transaction.atomic():
        if not session_state.lock(session):
            return set()
        ChatSession.objects.filter(pk=session.pk).update(deleted_at=timezone.now())
        hide_topics(session)
        return watchers(session)


def hide_topics(session: ChatSession) -> None:
    """Hide the runs of a chat and their reruns from everybody."""
    for topic in topics_of(session):
        HiddenTopic.objects.update_or_create({"user": None}, topic=topic)


def topics_of(session: ChatSession) -> set[str]:
    """Return the topics of the chat and of its runs' reruns, which are erased with it."""
    # A continuation has a message, and so the topic of the chat it is in.
    reruns = Run.objects.filter(message=None).only("topic")
    topics, found = {session.topic}, set(reruns.filter(origin__topic=session.topic))
    while found:
        topics |= {run.topic for run in found}
        found = set(reruns.filter(origin__in=found))
    return topics


def _restore(user: User, chats: Collection[int]) -> tuple[list[int], set[int]]:
    deleted = recently_deleted(user).filter(pk__in=chats).exclude(options__has_key=TAKEN_FROM)
    watcher_pks: set[int] = set()
    with transaction.atomic():
        restored = list(deleted.select_for_update().select_related("user"))
        ChatSession.objects.filter(pk__in=[chat.pk for chat in restored]).update(
            deleted_at=None
        )
        for chat in restored:
            show_topics(chat)
            watcher_pks |= watchers(chat)
    return [chat.pk for chat in restored], watcher_pks


def recently_deleted(user: User) -> QuerySet[ChatSession]:
    """Return the chats of a user that can still be restored."""
    recent = timezone.now() - UNDO_LIMIT
    return ChatSession.objects.filter(user=user, deleted_at__gte=recent)


def show_topics(chat: ChatSession) -> None:
    """Show the runs of a restored chat and their reruns again."""
    hidden = HiddenTopic.objects.filter(topic__in=topics_of(chat))
    if chat.is_temporary:
        hidden.update(user=chat.user)
    else:
        hidden.delete()


def due() -> QuerySet[ChatSession]:
    """Return deleted chats that can't be restored any more."""
    return ChatSession.objects.filter(deleted_at__lt=timezone.now() - ERASE_AFTER)


def has_due() -> bool:
    return due().exists()


@periodic("deleted chats", every=POLL_SECONDS, when=has_due)
def erase_due() -> int:
    """Erase what is due, in batches; return how many chats are gone."""
    count = 0
    for session in list(due().order_by("pk")):
        _erase(session)
        count += 1
    return count


def _erase(session: ChatSession) -> None:
    topics = topics_of(session)
    while batched_delete.delete_session_batch(session):
        time.sleep(PAUSE_SECONDS)
    HiddenTopic.objects.filter(topic__in=topics).delete()


def forget_outside_text(instance: ChatSession, **_signal: Any) -> None:
    """Delete the mark of a chat that no longer exists."""
    OutsideTextTopic.objects.filter(topic=instance.topic).delete()
