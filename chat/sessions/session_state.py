"""The lock of a chat, under which it changes, and its live run."""

from django.db.models import QuerySet

from agents.db.compiled_queries import compiled_query
from agents.models import Run
from chat.models import ChatSession


def lock(session: ChatSession) -> bool:
    """Lock the chat for this transaction; return False if it no longer exists."""
    return bool(_lock_row(session.pk))


@compiled_query
def _lock_row(session: int) -> QuerySet[ChatSession, tuple[int]]:
    present = ChatSession.objects.present().filter(pk=session)
    return present.select_for_update().values_list("pk")


def live_run(session: ChatSession) -> Run | None:
    return next(iter(_live_runs(session.topic)), None)


@compiled_query
def _live_runs(topic: str) -> QuerySet[Run]:
    return Run.objects.live().filter(topic=topic).defer("history").order_by()
