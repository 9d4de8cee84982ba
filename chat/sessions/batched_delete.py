"""Deletes chats and runs in batches, so that writers never wait long.

An interrupted deletion can be repeated.
"""

from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.access.recently_deleted import KEPT_FOR
from agents.models import HiddenTopic, Run, RunEvent
from chat.models import ChatSession

from . import server_files

RUN_BATCH = 4  # each takes up to 40 ms: its figures are kept, and its rows overwritten
EVENT_BATCH = 2_000


def delete_session_batch(session: ChatSession, unused_since: datetime | None = None) -> bool:
    """Delete part of a chat, or all that is left; return whether there may be more.

    With `unused_since`, only if it wasn't used since.
    """
    with transaction.atomic():
        # Also one that users have deleted.
        rows = ChatSession.objects.select_for_update().filter(pk=session.pk)
        if unused_since is not None:
            rows = rows.filter(updated_at__lt=unused_since)
        if not rows.values_list("pk"):
            return False
        live_runs = Run.objects.live().filter(topic=session.topic)
        if unused_since is not None and live_runs.exists():
            return False
        runs = Run.objects.filter(message__session=session).order_by("pk")
        if _delete_run_batch(runs):
            return True
        remove_files = partial(server_files.delete_for_chat, session.topic)
        HiddenTopic.objects.filter(topic=session.topic).delete()
        deleted = ChatSession.objects.exclude(deleted_at=None)
        mark_over(deleted.filter(options__taken_from__chat=session.pk))
        session.delete()
        transaction.on_commit(remove_files, robust=True)
    return False


def mark_over(sessions: QuerySet[ChatSession]) -> None:
    """Make the deletion of chats so old that they can't be restored and are erased next."""
    sessions.update(deleted_at=timezone.now() - 2 * KEPT_FOR)


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
