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

from agents.access.masking import is_open, masked, with_origins
from agents.models import Run
from agents.models.runs import ACTIVE
from agents.review.models import Rating, Review
from agents.web.presentation import RunView

from . import search_masking
from .filter_language import Filter, parse

A_PAGE = 50
MOST_FOUND = 3_000
# Of others' runs that somebody looks for by words: each must be masked to know.
MOST_READ = 500
# How far back a look goes, in strides: what there is much of is found in the first.
STRIDES = (10_000, 50_000, 250_000)
# The list shows none of them, and they are what is long in a row.
LONG = ("history", "answer", "output", "overrides", "detail", "advice", "marks")


@dataclass(frozen=True, slots=True)
class Found:
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
    found: list[Found]
    has_newer: bool = False
    unread: int | None = None

    @property
    def is_cut(self) -> bool:
        return len(self.found) > MOST_FOUND

    @property
    def count(self) -> int:
        """How many there are from here on, or how many are known of."""
        return min(len(self.found), MOST_FOUND)

    @property
    def newer(self) -> int | None:
        return self.found[0].pk if self.found and self.has_newer else None

    @property
    def older(self) -> int | None:
        """Behind which run the next page begins: the last one shown, or the last one read."""
        return self.found[A_PAGE - 1].pk if len(self.found) > A_PAGE else self.unread

    @cached_property
    def rows(self) -> list[RunRow]:
        return _rows([found.pk for found in self.found[:A_PAGE]], self.reader)


def page(user, asked: Filter, cursor: Cursor) -> RunPage:
    look = Look(user, asked)
    if cursor.newer is not None:
        return page(user, asked, Cursor(older=look.above(cursor.newer)))
    strides = _strides(user, asked, cursor.older)
    found, last = look.found(strides)
    is_early = len(found) <= A_PAGE or last > strides[-1].start and len(found) <= MOST_FOUND
    is_unread = is_early and Run.objects.filter(pk__lt=last).exists()
    return RunPage(
        reader=user,
        found=found,
        has_newer=cursor.older is not None,
        unread=last if is_unread else None,
    )


class Look:
    """One look through the runs; what was found by words alone is read as its reader may."""

    def __init__(self, user, asked: Filter) -> None:
        self.user, self.asked = user, asked
        self.is_discreet = search_masking.is_due(user, asked)
        apply = partial(search_masking.apply, user, asked) if self.is_discreet else asked.apply
        self.runs = apply(Run.objects.for_user(user))
        is_long = self.is_discreet and is_reviewer(user)
        self.most = MOST_READ if is_long else MOST_FOUND + 1

    def found(self, strides: Sequence[range]) -> tuple[list[Found], int]:
        """Newest first, and down to which run was looked."""
        rows = self.runs.order_by("-pk").values_list("pk", "started_at", "status", ACTIVE)
        found: list[Found] = []
        for stride in strides:
            part = rows.filter(pk__gte=stride.start, pk__lt=stride.stop)
            found += [Found(*row) for row in part[: self.most - len(found)]]
            if len(found) >= self.most:
                break
        last = found[-1].pk if len(found) >= self.most else strides[-1].start
        kept = self._readable(run.pk for run in found)
        return [run for run in found if run.pk in kept], last

    def first(self, runs: QuerySet[Run]) -> int | None:
        """The first of them that may be found."""
        pks = self._pks(runs, self.most if self.is_discreet else 1)
        kept = self._readable(pks)
        return next((pk for pk in pks if pk in kept), None)

    def above(self, pk: int) -> int | None:
        """Behind what the page just before a run begins; none where that is the first page."""
        most = self.most if self.is_discreet else A_PAGE + 1
        pks = self._pks(self.runs.filter(pk__gt=pk).order_by("pk"), most)
        kept = self._readable(pks)
        before = [each for each in pks if each in kept]
        if len(before) > A_PAGE:
            return before[A_PAGE - 1] + 1
        return pks[-1] + 1 if self.is_discreet and len(pks) == most else None

    def _pks(self, runs: QuerySet[Run], most: int) -> list[int]:
        return list(runs.values_list("pk", flat=True)[:most])

    def _readable(self, pks: Iterable[int]) -> set[int]:
        if not self.is_discreet:
            return set(pks)
        return search_masking.readable(self.user, self.asked, pks)


def neighbours(user, query: str, pk: int) -> tuple[int | None, int | None]:
    """The runs beside one within a filter: the next newer one and the next older one."""
    look = Look(user, parse(query, is_reviewer=is_reviewer(user)))
    runs = look.runs
    if is_reviewer(user):
        runs = runs.filter(pk__range=(pk - STRIDES[-1], pk + STRIDES[-1]))
    newer = look.first(runs.filter(pk__gt=pk).order_by("pk"))
    return newer, look.first(runs.filter(pk__lt=pk).order_by("-pk"))


def is_reviewer(user) -> bool:
    return user.has_perm("agents.review_runs")


def _strides(user, asked: Filter, older: int | None) -> list[range]:
    """The numbers of runs to look through, newest first; one's own are few: all at once."""
    end = _newest() + 1
    top = min(older or end, end)
    if not asked.terms or not is_reviewer(user):
        return [range(0, top)]
    ends = [top, *(max(0, top - back) for back in STRIDES)]
    return [range(low, high) for high, low in pairwise(ends) if low < high]


def _newest() -> int:
    return Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _rows(pks: list[int], reader: Any) -> list[RunRow]:
    runs = Run.objects.filter(pk__in=pks).select_related("user").defer(*LONG)
    said = list(Rating.objects.filter(run__in=pks).values_list("run", "is_good"))
    flagged = set(Review.objects.open().filter(run__in=pks).values_list("run", flat=True))
    return [
        RunRow(
            view=RunView(run if is_open(run, reader) else masked(run), place="trace"),
            ups=said.count((run.pk, True)),
            downs=said.count((run.pk, False)),
            is_flagged=run.pk in flagged,
        )
        for run in _newest_first(with_origins(runs))
    ]


def _newest_first(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: -run.pk)
