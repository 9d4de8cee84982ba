"""Records when a user's page was away from a live run.

The server knows when a page disconnects; only the page knows how long its connection was lost.
"""

from collections.abc import Iterable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from agents.models import Disconnection, Run

from . import close_codes

# Close codes after which a page reconnects by itself.
LOST_CODES = {1006, 1011, 1012, 1013, close_codes.TRY_AGAIN_LATER}
MAX_PER_RUN = 100
MAX_AWAY = timedelta(days=7)


def record_disconnect(run_ids: Iterable[int], page: str, code: int) -> None:
    """Record that a page left while these runs were live."""
    reason = Disconnection.Reason.LOST if code in LOST_CODES else Disconnection.Reason.CLOSED
    left_at = timezone.now()
    _save(
        Disconnection(run=run, page=page, reason=reason, left_at=left_at)
        for run in _below_limit(Run.objects.live().filter(pk__in=run_ids))
    )


def record_reconnect(run_ids: Iterable[int], page: str, away: timedelta) -> None:
    """Record that a page is back and how long its connection was lost."""
    came_back_at = timezone.now()
    left_at = came_back_at - min(away, MAX_AWAY)
    recorded = Disconnection.objects.filter(run__in=run_ids, page=page, came_back_at=None)
    recorded_run_ids = list(recorded.values_list("run", flat=True))
    # The page knows best why it was away: a closed one doesn't come back.
    recorded.update(
        reason=Disconnection.Reason.LOST, left_at=left_at, came_back_at=came_back_at
    )
    was_live = Q(ended_at=None) | Q(ended_at__gt=left_at)
    unrecorded = Run.objects.filter(was_live, pk__in=run_ids).exclude(pk__in=recorded_run_ids)
    _save(
        Disconnection(run=run, page=page, left_at=left_at, came_back_at=came_back_at)
        for run in _below_limit(unrecorded)
    )


def record_reopen(run_ids: Iterable[int]) -> None:
    """Record that a user who closed a page has opened one again."""
    closed = Disconnection.objects.filter(
        run__in=run_ids, reason=Disconnection.Reason.CLOSED, came_back_at=None
    )
    if closed.exists():  # checked first, because even an empty update takes the write lock
        closed.update(came_back_at=timezone.now())


def _below_limit(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Limit the rows per run, in case a page reconnects endlessly."""
    counted = runs.annotate(disconnection_count=Count("disconnections"))
    return counted.filter(disconnection_count__lt=MAX_PER_RUN)


def _save(disconnections: Iterable[Disconnection]) -> None:
    try:
        with transaction.atomic():
            Disconnection.objects.bulk_create(disconnections)
    except IntegrityError:
        pass  # the run was deleted meanwhile, with its disconnections
