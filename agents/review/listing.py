"""The list of runs: a page of those that a filter means, newest first, whatever there is.

Pages are cut by the number of a run, so none costs more than the first. One look through the
runs gives the page, how many there are and what the charts show. It ends after `MOST_FOUND`
that match, or so many that were looked at, and the page says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

from django.db.models import QuerySet

from agents.access.masking import is_participant, load_origins, mask_row
from agents.models import Run
from agents.models.runs import ACTIVE_SECONDS
from agents.review.models import Rating, Review
from agents.web.presentation import RunView

from . import search_masking
from .filter_language import Filter, parse

PAGE_SIZE = 50
MAX_MATCHES = 3_000
# Of others' runs that somebody looks for by words: each must be masked to know.
MAX_MASKED_MATCHES = 500
# How far back a look goes, in strides: what there is much of is found in the first.
SCAN_DISTANCES = (10_000, 50_000, 250_000)
# The list shows none of them, and they are what is long in a row.
DEFERRED_FIELDS = ("history", "answer", "output", "overrides", "detail", "advice", "marks")


@dataclass(frozen=True, slots=True)
class RunMatch:
    """A run that matches, as far as it is counted and drawn."""

    pk: int
    started_at: datetime
    status: str
    active: float | None  # seconds, without waiting for people


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """Where a page begins: behind the runs down to one, or just before it. Else at the top."""

    older: int | None = None
    newer: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunRow:
    view: RunView
    ups: int = 0
    downs: int = 0
    is_flagged: bool = False


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """`found` begins with the runs of the page; `unread` is where the look ended early."""

    reader: Any
    found: list[RunMatch]
    has_newer: bool = False
    unread: int | None = None

    @property
    def is_cut(self) -> bool:
        return len(self.found) > MAX_MATCHES

    @property
    def count(self) -> int:
        """How many there are from here on, or how many are known of."""
        return min(len(self.found), MAX_MATCHES)

    @property
    def newer(self) -> int | None:
        return self.found[0].pk if self.found and self.has_newer else None

    @property
    def older(self) -> int | None:
        """Behind which run the next page begins: the last one shown, or the last one read."""
        return self.found[PAGE_SIZE - 1].pk if len(self.found) > PAGE_SIZE else self.unread

    @cached_property
    def rows(self) -> list[RunRow]:
        return _load_rows([found.pk for found in self.found[:PAGE_SIZE]], self.reader)


def page(user, asked: Filter, cursor: Cursor) -> RunPage:
    look = RunSearch(user, asked)
    if cursor.newer is not None:
        return page(user, asked, Cursor(older=look.above(cursor.newer)))
    strides = _scan_ranges(user, asked, cursor.older)
    found, last = look.found(strides)
    is_early = len(found) <= PAGE_SIZE or last > strides[-1].start and len(found) <= MAX_MATCHES
    is_unread = is_early and Run.objects.filter(pk__lt=last).exists()
    return RunPage(
        reader=user,
        found=found,
        has_newer=cursor.older is not None,
        unread=last if is_unread else None,
    )


class RunSearch:
    """One look through the runs; what was found by words alone is read as its reader may."""

    def __init__(self, user, asked: Filter) -> None:
        self.user, self.asked = user, asked
        self.is_discreet = search_masking.is_needed(user, asked)
        apply = (
            partial(search_masking.prefilter, user, asked) if self.is_discreet else asked.apply
        )
        self.runs = apply(Run.objects.for_user(user))
        is_long = self.is_discreet and is_reviewer(user)
        self.most = MAX_MASKED_MATCHES if is_long else MAX_MATCHES + 1

    def found(self, strides: Sequence[range]) -> tuple[list[RunMatch], int]:
        """Newest first, and down to which run was looked."""
        rows = self.runs.order_by("-pk").values_list(
            "pk", "started_at", "status", ACTIVE_SECONDS
        )
        found: list[RunMatch] = []
        for stride in strides:
            part = rows.filter(pk__gte=stride.start, pk__lt=stride.stop)
            found += [RunMatch(*row) for row in part[: self.most - len(found)]]
            if len(found) >= self.most:
                break
        last = found[-1].pk if len(found) >= self.most else strides[-1].start
        kept = self._readable_pks(run.pk for run in found)
        return [run for run in found if run.pk in kept], last

    def first(self, runs: QuerySet[Run]) -> int | None:
        """The first of them that may be found."""
        pks = self._fetch_pks(runs, self.most if self.is_discreet else 1)
        kept = self._readable_pks(pks)
        return next((pk for pk in pks if pk in kept), None)

    def above(self, pk: int) -> int | None:
        """Behind what the page just before a run begins; none where that is the first page."""
        most = self.most if self.is_discreet else PAGE_SIZE + 1
        pks = self._fetch_pks(self.runs.filter(pk__gt=pk).order_by("pk"), most)
        kept = self._readable_pks(pks)
        before = [each for each in pks if each in kept]
        if len(before) > PAGE_SIZE:
            return before[PAGE_SIZE - 1] + 1
        return pks[-1] + 1 if self.is_discreet and len(pks) == most else None

    def _fetch_pks(self, runs: QuerySet[Run], most: int) -> list[int]:
        return list(runs.values_list("pk", flat=True)[:most])

    def _readable_pks(self, pks: Iterable[int]) -> set[int]:
        if not self.is_discreet:
            return set(pks)
        return search_masking.readable_pks(self.user, self.asked, pks)


def neighbours(user, query: str, pk: int) -> tuple[int | None, int | None]:
    """The runs beside one within a filter: the next newer one and the next older one."""
    look = RunSearch(user, parse(query, is_reviewer=is_reviewer(user)))
    runs = look.runs
    if is_reviewer(user):
        runs = runs.filter(pk__range=(pk - SCAN_DISTANCES[-1], pk + SCAN_DISTANCES[-1]))
    newer = look.first(runs.filter(pk__gt=pk).order_by("pk"))
    return newer, look.first(runs.filter(pk__lt=pk).order_by("-pk"))


def is_reviewer(user) -> bool:
    return user.has_perm("agents.review_runs")


def _scan_ranges(user, asked: Filter, older: int | None) -> list[range]:
    """The numbers of runs to look through, newest first; one's own are few: all at once."""
    end = _newest_pk() + 1
    top = min(older or end, end)
    if not asked.terms or not is_reviewer(user):
        return [range(0, top)]
    ends = [top, *(max(0, top - back) for back in SCAN_DISTANCES)]
    return [range(low, high) for high, low in pairwise(ends) if low < high]


def _newest_pk() -> int:
    return Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _load_rows(pks: list[int], reader: Any) -> list[RunRow]:
    runs = Run.objects.filter(pk__in=pks).select_related("user").defer(*DEFERRED_FIELDS)
    said = list(Rating.objects.filter(run__in=pks).values_list("run", "is_good"))
    flagged = set(Review.objects.open().filter(run__in=pks).values_list("run", flat=True))
    return [
        RunRow(
            view=RunView(run if is_participant(run, reader) else mask_row(run), place="trace"),
            ups=said.count((run.pk, True)),
            downs=said.count((run.pk, False)),
            is_flagged=run.pk in flagged,
        )
        for run in _newest_first(load_origins(runs))
    ]


def _newest_first(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: -run.pk)
