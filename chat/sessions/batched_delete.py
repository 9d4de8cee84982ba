"""Deletes chats and runs in batches, so that writers never wait long.

An interrupted deletion can be repeated.
"""

from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from agents.models import HiddenTopic, Run, RunEvent
from chat.models import ChatSession

from . import server_files

RUN_BATCH = 4  # each takes up to 40 ms: its figures are kept, and its rows overwritten
EVENT_BATCH = 2_000


def delete_session_batch(session: ChatSession, before: datetime | None = None) -> bool:
    """Delete part of a chat, or all that is left; return whether there may be more.

    With `before`, only if it wasn't used since.
    """
    with transaction.atomic():
        if not _lock(session) or not _is_idle(session, before):
            return False
        runs = Run.objects.filter(message__session=session).order_by("pk")
        if _delete_run_batch(runs):
            return True
        remove_files = partial(server_files.delete_for_chat, session.topic)
        HiddenTopic.objects.filter(topic=session.topic).delete()
        session.delete()
        transaction.on_commit(remove_files, robust=True)
    return False


def _lock(session: ChatSession) -> bool:
    """Lock the chat, also one that users have deleted; return False if it is gone."""
    rows = ChatSession.objects.select_for_update().filter(pk=session.pk)
    return bool(rows.values_list("pk"))


def delete_run_batch(runs: QuerySet[Run]) -> bool:
    """Delete some of these runs, or part of the first; return whether there may be more."""
    with transaction.atomic():
        return _delete_run_batch(runs.order_by("pk"))


def _delete_run_batch(runs: QuerySet[Run]) -> bool:
    run_pks = list(runs.values_list("pk", flat=True)[:RUN_BATCH])
    if not run_pks:
        return False
    events = RunEvent.objects.filter(run__in=run_pks)
    event_pks = list(events.order_by("pk").values_list("pk", flat=True)[:EVENT_BATCH])
    if len(event_pks) == EVENT_BATCH:
        RunEvent.objects.filter(pk__in=event_pks).delete()
    else:
        Run.objects.filter(pk__in=run_pks).delete()
    return True


def _is_idle(session: ChatSession, before: datetime | None) -> bool:
    if before is None:
        return True
    same = ChatSession.objects.filter(pk=session.pk, updated_at__lt=before)
    live = Run.objects.live().filter(topic=session.topic)
    return same.exists() and not live.exists()
