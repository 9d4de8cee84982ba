"""Temporary chats: in no list, and deleted soon after their last page was closed."""

import asyncio
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.db import database
from agents.db.periodic import periodic
from agents.models import HiddenTopic, Run
from chat.models import ChatSession

from . import deletion, session_state, titles

HEARTBEAT_SECONDS = 60.0
CLOSED_AFTER = timedelta(minutes=5)  # without an open page
LONGEST = timedelta(hours=24)
POLL_SECONDS = 30.0


def create(user: User, options: dict[str, Any]) -> ChatSession:
    """Create a temporary chat, whose runs only its user sees."""
    chat = ChatSession.objects.create(
        user=user,
        title=_("Temporary chat"),
        options=options,
        is_temporary=True,
        last_open_at=timezone.now(),
    )
    HiddenTopic.objects.create(topic=chat.topic, user=user)
    return chat


def keep(chat: ChatSession) -> None:
    """Turn a temporary chat into an ordinary one, named after its first message."""
    with transaction.atomic():
        if not session_state.lock(chat):
            return
        first = chat.messages.select_related("run__agent").order_by("pk").first()
        run = first.run if first else None
        if first and run and run.agent and run.status != Run.Status.BLOCKED:
            title = titles.first_title(run.agent, first.text)
        else:
            title = titles.generic_title()
        ChatSession.objects.filter(pk=chat.pk).update(
            title=title, is_temporary=False, last_open_at=None
        )
        HiddenTopic.objects.filter(topic__in=deletion.topics_of(chat)).delete()
    deletion.announce([chat.user_id])


def touch(chat: ChatSession) -> None:
    """Record that a page of the chat is open."""
    ChatSession.objects.filter(pk=chat.pk).update(last_open_at=timezone.now())


async def hold_open(chat: ChatSession) -> None:
    """Record the same for as long as a page is connected."""
    while True:
        await database.run(touch, chat)
        await asyncio.sleep(HEARTBEAT_SECONDS)


def due() -> list[ChatSession]:
    """Return temporary chats that no page has open any more, or that are too old."""
    moment = timezone.now()
    is_closed = Q(last_open_at__lt=moment - CLOSED_AFTER) | Q(last_open_at=None)
    is_old = Q(created_at__lt=moment - LONGEST)
    chats = ChatSession.objects.present().filter(is_closed | is_old, is_temporary=True)
    return list(chats.order_by("pk"))


@periodic("temporary chats", every=POLL_SECONDS)
async def delete_due() -> None:
    """Delete temporary chats that are over; any process does it, also after a crash."""
    for chat in await database.run(due):
        await deletion.delete(chat)
