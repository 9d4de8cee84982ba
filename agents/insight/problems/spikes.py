"""Spikes: a problem that occurs much more often than it used to.

The occurrences of the current and the previous hour are compared with what is usual: the
average of two hours over the week before. It is a spike from 10 occurrences on, if they are
more than three times the usual number and clearly outside its variation:

    recent >= 10 and recent > 3 * usual + 3 * sqrt(usual)

A problem needs a past of 24 hours; until then it is new. Opening a problem that is ignored
until it spikes, and the alert, happen once in 24 hours.
"""

from datetime import datetime, timedelta
from math import sqrt

from django.db import transaction
from django.db.models import Q, Sum
from django.utils import timezone

from agents.db.periodic import periodic

from .models import Problem, ProblemChange, ProblemHour

MIN_RECENT = 10
FACTOR = 3.0
DEVIATIONS = 3.0
WINDOW = timedelta(hours=2)
PAST = timedelta(days=7)
MIN_AGE = timedelta(hours=24)
QUIET = timedelta(hours=24)
KEPT = timedelta(days=90)


def is_spike(recent: int, usual: float) -> bool:
    return recent >= MIN_RECENT and recent > FACTOR * usual + DEVIATIONS * sqrt(usual)


def detect(current_time: datetime | None = None) -> list[Problem]:
    """Note which problems spike; return them. One that is ignored until then is opened."""
    current_time = current_time or timezone.now()
    hour = current_time.replace(minute=0, second=0, microsecond=0)
    start = hour - WINDOW + timedelta(hours=1)
    recent = dict(
        ProblemHour.objects.filter(hour__gte=start)
        .values_list("problem")
        .annotate(total=Sum("count"))
        .filter(total__gte=MIN_RECENT)
    )
    if not recent:
        return []
    past = ProblemHour.objects.filter(
        problem__in=recent, hour__gte=start - PAST, hour__lt=start
    )
    past_totals = dict(past.values_list("problem").annotate(total=Sum("count")))
    usual = {pk: past_totals.get(pk, 0) / (PAST / WINDOW) for pk in recent}
    watched = Problem.objects.filter(
        Q(status=Problem.Status.OPEN) | Q(status=Problem.Status.IGNORED, returns_on_spike=True),
        pk__in=recent,
        first_seen__lt=current_time - MIN_AGE,
    )
    return [
        problem
        for problem in watched
        if is_spike(recent[problem.pk], usual[problem.pk])
        and _note(problem, recent[problem.pk], usual[problem.pk], current_time)
    ]


@transaction.atomic
def _note(problem: Problem, recent: int, usual: float, current_time: datetime) -> bool:
    """Add the spike to the history, once in a while; return whether it was added."""
    locked = Problem.objects.select_for_update().get(pk=problem.pk)
    spikes = locked.changes.filter(
        action=ProblemChange.Action.SPIKED, at__gt=current_time - QUIET
    )
    if spikes.exists():
        return False
    if locked.status == Problem.Status.IGNORED:
        Problem.objects.filter(pk=problem.pk).update(
            status=Problem.Status.OPEN, returns_on_spike=False
        )
    ProblemChange.objects.create(
        problem=problem,
        action=ProblemChange.Action.SPIKED,
        at=current_time,
        details={"recent": recent, "usual": round(usual, 1)},
        is_announced=False,
    )
    return True


@periodic("old problem counts", every=3_600, once=True)
def delete_old_counts() -> None:
    """Delete hourly counts that no trend and no comparison reads any more."""
    ProblemHour.objects.filter(hour__lt=timezone.now() - KEPT).delete()
