"""Keeps the summaries of runs current: new runs, changed feedback, runs that were resumed.

Runs are looked at once, in the order of their ids. Those that are live then are marked, and
summarized when they have ended. Pages catch up before they count, and a periodic job does it in
between; what both have done is equal.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date

from django.db import OperationalError, transaction
from django.db.models import F, Max

from agents.db.fast_writes import insert_many
from agents.models import Run, RunEvent
from agents.models.runs.runs import RunQuerySet

from . import summaries
from .models import (
    VERSION,
    ModelSummary,
    Progress,
    RunSummary,
    StaleRun,
    SummarizedDay,
    TitleUsage,
    ToolSummary,
)

BATCH = 100
PAGE = 5_000
# Ids are given before a run is saved, so the last ones are looked at again.
OVERLAP = 200
MAX_CHECKED = 1_000
# The periodic job has done the rest.
MAX_FOR_PAGE = 500


def catch_up(limit: int | None = None) -> int:
    """Summarize what is new or has changed; return how many runs that were.

    With a limit, it stops soon after as many.
    """
    _mark_resumed()
    late_titles = TitleUsage.objects.filter(is_counted=False, run__figures__isnull=False)
    titled = late_titles.order_by("run_id").values_list("run_id", flat=True)
    count = _summarize_all(list(titled[:limit]))
    has_more = True
    while has_more and (limit is None or count < limit):
        summarized, has_more = _summarize_next(limit or PAGE)
        count += summarized
    # Marked runs that have ended; of deleted ones, only the marks are deleted.
    live = Run.objects.live().order_by().values("pk")
    ended = StaleRun.objects.exclude(run__in=live).order_by("pk").values_list("pk", "run")
    refreshed = 0
    while (limit is None or refreshed < limit) and (marks := list(ended[:BATCH])):
        refreshed += _summarize(sorted({run for _pk, run in marks}))
        StaleRun.objects.filter(pk__in=[pk for pk, _run in marks]).delete()
    count += refreshed
    # Summaries of an earlier version, the newest first.
    outdated = RunSummary.objects.filter(version__lt=VERSION).order_by("-version", "-run_id")
    remaining = None if limit is None else max(0, limit - count)
    return count + _summarize_all(list(outdated.values_list("run_id", flat=True)[:remaining]))


def catch_up_for_page() -> None:
    """Count what has just happened; if the database is busy, the page is a little behind."""
    with suppress(OperationalError):
        catch_up(MAX_FOR_PAGE)


def count_behind(limit: int) -> int:
    """Return how many ended runs weren't looked at yet, up to a limit."""
    return len(_countable().filter(pk__gt=_last_run()).values_list("pk")[:limit])


def mark_late_events() -> None:
    """Have recent summaries computed again if their runs have more events now."""
    recent = RunSummary.objects.order_by("-run_id").values_list("run_id", "last_seq")
    counted = dict(recent[:MAX_CHECKED])
    events = RunEvent.objects.filter(run__in=list(counted)).order_by()
    last = events.values_list("run_id").annotate(last=Max("seq"))
    mark_stale(run for run, seq in last if seq > counted[run])


def mark_stale(pks: Iterable[int]) -> None:
    """Have the summaries of these runs computed again; what they count has changed."""
    StaleRun.objects.bulk_create([StaleRun(run=pk) for pk in pks])


def mark_days(days: Iterable[date]) -> None:
    """Have the figures of these days added up again."""
    for day in sorted(set(days)):
        same = SummarizedDay.objects.filter(pk=day)
        if not same.update(changes=F("changes") + 1):
            _row, is_new = SummarizedDay.objects.get_or_create(day=day)
            if not is_new:  # another process was faster
                same.update(changes=F("changes") + 1)


def lock() -> Progress:
    """Let one process write at a time, until its transaction ends."""
    rows = Progress.objects.select_for_update().filter(pk=1)
    for row in rows:
        return row
    Progress.objects.get_or_create(pk=1)
    return rows.get()


def _last_run() -> int:
    return Progress.objects.filter(pk=1).values_list("last_run", flat=True).first() or 0


def _countable() -> RunQuerySet:
    """Return ended runs that count: neither imported ones nor those of experiments."""
    return Run.objects.exclude(status__in=Run.LIVE).executed().without_experiments()


def _summarize_next(limit: int) -> tuple[int, bool]:
    """Summarize the next runs, and mark live ones; return how many, and if there are more."""
    last = _last_run()
    newer = Run.objects.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)
    new_pks = list(newer[:limit])
    skipped = Run.objects.filter(pk__gt=last - OVERLAP, pk__lte=last, figures=None)
    pks = [*skipped.order_by("pk").values_list("pk", flat=True), *new_pks]
    if not pks:
        return 0, False
    live = set(Run.objects.live().filter(pk__in=pks).values_list("pk", flat=True))
    if live:
        marked = StaleRun.objects.filter(run__in=live).values_list("run", flat=True)
        mark_stale(live - set(marked))
    missing = _countable().filter(pk__in=pks, figures=None)
    missing_pks = list(missing.order_by("pk").values_list("pk", flat=True))
    done = 0
    for start in range(0, len(missing_pks), BATCH):
        done += _summarize(missing_pks[start : start + BATCH])
        if new_pks and start + BATCH < len(missing_pks):
            _advance(missing_pks[start : start + BATCH][-1])
    if new_pks:
        _advance(new_pks[-1])
    return done, len(new_pks) == limit


def _advance(pk: int) -> None:
    """Remember how far runs were looked at, so that an interrupted count doesn't start over."""
    further = Progress.objects.filter(pk=1, last_run__lt=pk)
    if not further.update(last_run=pk):
        Progress.objects.get_or_create(pk=1)
        further.update(last_run=pk)


def _summarize(pks: Sequence[int]) -> int:
    built = summaries.build(pks)
    regenerated = (older for rows in built for older in rows.regenerated)
    outdated = RunSummary.objects.filter(run__in={*regenerated} - {*pks}, regenerated=0)
    with transaction.atomic():
        lock()
        built_pks = [rows.summary.run_id for rows in built]
        old = RunSummary.objects.filter(run__in=built_pks)
        old_days = list(old.values_list("day", flat=True))
        mark_days([*old_days, *(rows.summary.day for rows in built)])
        run_ids = Run.objects.filter(pk__in=built_pks).values_list("pk", flat=True)
        present = set(run_ids.select_for_update())  # none of them is deleted meanwhile
        if old_days:
            old.delete()
        new = [rows for rows in built if rows.summary.run_id in present]
        insert_many(RunSummary, [rows.summary for rows in new])
        insert_many(ToolSummary, [tool for rows in new for tool in rows.tools])
        insert_many(ModelSummary, [model for rows in new for model in rows.models])
        if titled_pks := [rows.summary.run_id for rows in new if rows.has_title]:
            TitleUsage.objects.filter(run__in=titled_pks).update(is_counted=True)
        mark_stale(outdated.values_list("run_id", flat=True))
    return len(built)


def _summarize_all(pks: Sequence[int]) -> int:
    """Summarize these runs, a batch per transaction."""
    batches = (pks[start : start + BATCH] for start in range(0, len(pks), BATCH))
    return sum(_summarize(batch) for batch in batches)


def _mark_resumed() -> None:
    """Delete the summaries of runs that are live again, until they have ended."""
    live = Run.objects.live().order_by().values("pk")  # few, and an index has them
    if not (pks := list(RunSummary.objects.filter(run__in=live).values_list("run", flat=True))):
        return
    with transaction.atomic():
        lock()
        rows = RunSummary.objects.filter(run__in=pks)
        mark_days(rows.values_list("day", flat=True))
        rows.delete()
        mark_stale(pks)
