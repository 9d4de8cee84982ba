"""Groups finished runs and ratings: new ones soon after they end, older ones once.

How far it got is one row, locked while findings are counted. Runs are ordered by their end,
which isn't the order of their commits, so the last minutes are read again; what was counted
already is recognized by its row.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.db.periodic import periodic
from agents.models import PeriodicJob, Run
from agents.review.models import Rating

from . import counting, findings, spikes
from .findings import Finding
from .models import Problem, ProblemRun

JOB_NAME = "problems"
# Between batches of older runs, so that chats come first.
PAUSE_SECONDS = 0.2
BATCH = 300
# Longer than the event writer tries to commit.
OVERLAP = timedelta(minutes=2)
# A rating is saved at once, and its reason when the user has chosen one.
RATING_DELAY = timedelta(minutes=1)
HISTORY = timedelta(days=30)
MAX_HISTORY_RUNS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Up to which end of a run and which rating is counted, and what of the history is left."""

    runs_until: str
    ratings_until: str
    history_before: int
    history_left: int

    @classmethod
    def start(cls, current_time: datetime) -> Self:
        newest = Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        since = (current_time - HISTORY).isoformat()
        return cls(
            runs_until=current_time.isoformat(),
            ratings_until=since,
            history_before=newest + 1,
            history_left=MAX_HISTORY_RUNS,
        )

    def changed(self, **values: Any) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | values


@periodic(JOB_NAME, every=60, once=True)
def collect_problems() -> None:
    """Group what is new, look for spikes, then continue with older runs."""
    collect()
    spikes.detect()
    while collect_history():
        time.sleep(PAUSE_SECONDS)


def collect(current_time: datetime | None = None) -> int:
    """Count what ended since the last time; return how many findings were new."""
    current_time = current_time or timezone.now()
    progress = _progress(current_time)
    since = datetime.fromisoformat(progress.runs_until) - OVERLAP
    last_pk = 0
    count = 0
    is_all = False
    while not is_all:
        following = Q(ended_at__gt=since) | Q(ended_at=since, pk__gt=last_pk)
        ended = findings.finished_runs().filter(following, ended_at__gte=since)
        runs = list(ended.order_by("ended_at", "pk")[:BATCH])
        is_all = len(runs) < BATCH
        if runs and runs[-1].ended_at:
            since = runs[-1].ended_at
            last_pk = runs[-1].pk
        until = current_time if is_all else min(since, current_time)
        count += _save(findings.find(runs), progress, runs_until=until.isoformat())
        progress = _progress(current_time)
    since = datetime.fromisoformat(progress.ratings_until) - OVERLAP
    settled = current_time - RATING_DELAY
    counted = ProblemRun.objects.filter(problem__kind=Problem.Kind.RATING).values("run")
    bad_ratings = Rating.objects.filter(
        is_good=False,
        rated_at__gt=since,
        rated_at__lte=settled,
        run__in=findings.finished_runs().values("pk"),
    ).exclude(run__in=counted)
    ratings = list(bad_ratings.select_related("run").order_by("rated_at")[:BATCH])
    until = ratings[-1].rated_at if len(ratings) == BATCH else settled
    rating_findings = findings.find_ratings(ratings)
    return count + _save(rating_findings, progress, ratings_until=until.isoformat())


def collect_history(current_time: datetime | None = None) -> bool:
    """Group a batch of the runs from before an upgrade; return whether some are left."""
    current_time = current_time or timezone.now()
    progress = _progress(current_time)
    if progress.history_left <= 0:
        return False
    older = findings.finished_runs().filter(
        pk__lt=progress.history_before, started_at__gte=current_time - HISTORY
    )
    runs = list(older.order_by("-pk")[:BATCH])
    runs_left = progress.history_left - BATCH if len(runs) == BATCH else 0
    _save(
        findings.find(runs),
        progress,
        is_live=False,
        history_before=runs[-1].pk if runs else 0,
        history_left=runs_left,
    )
    return runs_left > 0


def _progress(current_time: datetime) -> Progress:
    row, _is_new = PeriodicJob.objects.get_or_create(name=JOB_NAME)
    if not row.result:
        with transaction.atomic():
            row = PeriodicJob.objects.select_for_update().get(name=JOB_NAME)
            row.result = row.result or Progress.start(current_time).changed()
            row.save(update_fields=["result"])
    return Progress(**row.result)


def _save(
    new_findings: Sequence[Finding], progress: Progress, *, is_live: bool = True, **values: Any
) -> int:
    """Count the findings and move on, unless another process did meanwhile."""
    report = progress.changed()
    if not new_findings and all(report[name] == value for name, value in values.items()):
        return 0
    with transaction.atomic():
        row = PeriodicJob.objects.select_for_update().get(name=JOB_NAME)
        count = counting.record(new_findings, is_live=is_live) if new_findings else 0
        # Findings are counted once in any case; only the position must not go back.
        for name, value in values.items():
            furthest = max if name.endswith("_until") else min
            row.result[name] = furthest(row.result[name], value)
        row.save(update_fields=["result"])
    return count
