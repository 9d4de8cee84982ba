"""The list of runs: a page of matches, newest first.

Pages are split by run id, so none costs more than the first. One scan of the runs gives the
page, the count and the charts. It ends after `MAX_MATCHES` matches or a maximum distance, and
the page says so.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import Any

from django.contrib.auth.models import User
from django.db.models import IntegerField, QuerySet, Value

from agents.access.masking import is_own, is_participant, load_origins, mask_row
from agents.models import Run
from agents.models.runs.runs import ACTIVE_SECONDS
from agents.review.models import Label, Rating, Review
from agents.web.presentation import RunView
from agents.web.presentation.formats import status_text

from ..filters import search_masking
from ..filters.filter_language import Filter, parse
from .columns import Sort
from .grouping import Grouping

PAGE_SIZE = 50
MAX_MATCHES = 3_000
# For text searches in others' runs, each of which must be masked to match.
MAX_MASKED_MATCHES = 500
# How far back a search goes, in steps: frequent matches are found in the first.
SCAN_DISTANCES = (10_000, 50_000, 250_000)
# Long columns that the list doesn't display.
DEFERRED_FIELDS = ("history", "answer", "output", "overrides", "advice", "step_types")


@dataclass(frozen=True, slots=True)
class RunMatch:
    """A matching run, with what counts and charts need."""

    pk: int
    started_at: datetime
    status: str
    active: float | None  # seconds, without waiting for people
    key: Any = None  # what the list is sorted by
    group: Any = None


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """Where a page starts: after a run, before one, or at the top."""

    older: int | None = None
    newer: int | None = None
    number: int = 1  # of a sorted page


@dataclass(frozen=True, kw_only=True)
class RunRow:
    view: RunView
    ups: int = 0
    downs: int = 0
    is_flagged: bool = False
    is_own: bool = True
    labels: tuple[str, ...] = ()
    score: float | None = None

    @cached_property
    def sentence(self) -> str:
        """Why it has no answer, or what it waits for; empty if it was completed."""
        run = self.view.run
        if run.is_live:
            return self.view.status_label if run.is_waiting else ""
        if run.status == Run.Status.COMPLETED:
            return ""
        return status_text.ending_sentence(run, is_shared=not self.is_own)


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """A page; `found` starts with its runs, `unread` is where the search stopped early.

    A sorted or grouped page orders the matches, up to `MAX_MATCHES`, so that no order needs
    an index.
    """

    found: list[RunMatch]
    has_newer: bool = False
    unread: int | None = None
    sort: Sort | None = None
    grouping: Grouping | None = None
    number: int = 1

    @property
    def is_ordered(self) -> bool:
        """Whether its matches are in another order than newest first."""
        return self.sort is not None or self.grouping is not None

    @property
    def is_cut(self) -> bool:
        return len(self.found) > MAX_MATCHES

    @property
    def count(self) -> int:
        """Number of matches from here on, as far as known."""
        return min(len(self.found), MAX_MATCHES)

    @property
    def is_order_limited(self) -> bool:
        """Whether there may be matches that were not sorted or grouped."""
        return self.is_ordered and (self.is_cut or self.unread is not None)

    @cached_property
    def pks(self) -> list[int]:
        """The runs of this page, in its order."""
        if not self.is_ordered:
            return [match.pk for match in self.found[:PAGE_SIZE]]
        start = (self.number - 1) * PAGE_SIZE
        matches = sorted_matches(self.found, self.sort)
        if self.grouping is not None:
            matches = grouped_matches(matches, self.grouping)
        return [match.pk for match in matches[start : start + PAGE_SIZE]]

    @property
    def last_number(self) -> int:
        return max(1, -(-self.count // PAGE_SIZE))

    @property
    def newer(self) -> int | None:
        return self.found[0].pk if self.found and self.has_newer else None

    @property
    def older(self) -> int | None:
        """The run after which the next page starts: the last displayed or searched."""
        return self.found[PAGE_SIZE - 1].pk if len(self.found) > PAGE_SIZE else self.unread


def load_page(
    user: User,
    run_filter: Filter,
    cursor: Cursor,
    sort: Sort | None = None,
    grouping: Grouping | None = None,
) -> RunPage:
    search = RunSearch(user, run_filter, sort, grouping)
    if sort is not None or grouping is not None:
        matches, last = search.find(_scan_ranges(user, run_filter, None))
        is_unread = last > 1 and Run.objects.filter(pk__lt=last).exists()
        first_page = RunPage(
            found=matches, unread=last if is_unread else None, sort=sort, grouping=grouping
        )
        return replace(first_page, number=min(max(1, cursor.number), first_page.last_number))
    if cursor.newer is not None:
        return load_page(user, run_filter, Cursor(older=search.above(cursor.newer)))
    id_ranges = _scan_ranges(user, run_filter, cursor.older)
    matches, last = search.find(id_ranges)
    is_early = (
        len(matches) <= PAGE_SIZE or last > id_ranges[-1].start and len(matches) <= MAX_MATCHES
    )
    is_unread = is_early and Run.objects.filter(pk__lt=last).exists()
    return RunPage(
        found=matches,
        has_newer=cursor.older is not None,
        unread=last if is_unread else None,
    )


def sorted_matches(matches: Sequence[RunMatch], sort: Sort | None) -> list[RunMatch]:
    """Return the matches in this order; empty values are last, ties newest first."""
    if sort is None:
        return list(matches[:MAX_MATCHES])
    with_key = [run for run in matches[:MAX_MATCHES] if run.key is not None]
    with_key.sort(key=lambda run: run.key, reverse=sort.is_descending)
    without_key = [run for run in matches[:MAX_MATCHES] if run.key is None]
    return [*with_key, *without_key]


def grouped_matches(matches: Sequence[RunMatch], grouping: Grouping) -> list[RunMatch]:
    """Return the matches by group, in the order of each group's first; the rest is last."""
    groups: dict[Any, list[RunMatch]] = {}
    for match in matches:
        groups.setdefault(match.group, []).append(match)
    rest = groups.pop(None, [])
    if grouping.is_chronological:
        groups = {key: sorted(group, key=lambda run: run.pk) for key, group in groups.items()}
    return [*chain.from_iterable(groups.values()), *rest]


class RunSearch:
    """One search; text matches are checked against what its reader can see."""

    def __init__(
        self,
        user: User,
        run_filter: Filter,
        sort: Sort | None = None,
        grouping: Grouping | None = None,
    ) -> None:
        self.user = user
        self.run_filter = run_filter
        self.sort = sort
        self.grouping = grouping
        self.is_discreet = search_masking.is_needed(user, run_filter)
        apply = (
            partial(search_masking.prefilter, user, run_filter)
            if self.is_discreet
            else run_filter.apply
        )
        runs = Run.objects.for_user(user).listed()
        if not run_filter.has_experiments:
            runs = runs.without_experiments()
        if not run_filter.has_imported:
            runs = runs.executed()
        if grouping is not None:
            runs = runs.filter(grouping.only(user))
        if run_filter.has_queue:
            # Or the names of others' queues could be guessed letter by letter.
            hidden = Review.objects.in_queues_of_others(user)
            runs = runs.exclude(pk__in=hidden.values("run"))
        self.runs = apply(runs)
        is_long = self.is_discreet and is_reviewer(user)
        self.limit = MAX_MASKED_MATCHES if is_long else MAX_MATCHES + 1

    def find(self, id_ranges: Sequence[range]) -> tuple[list[RunMatch], int]:
        """Return matches, newest first, and the last run searched."""
        columns: list[Any] = ["pk", "started_at", "status", ACTIVE_SECONDS]
        if self.sort is not None:
            columns.append(self.sort.column.key)
        if self.grouping is not None:
            columns += [] if self.sort else [Value(None, output_field=IntegerField())]
            columns.append(self.grouping.key(self.user))
        rows = self.runs.order_by("-pk").values_list(*columns)
        matches: list[RunMatch] = []
        for id_range in id_ranges:
            candidates = rows.filter(pk__gte=id_range.start, pk__lt=id_range.stop)
            matches += [RunMatch(*row) for row in candidates[: self.limit - len(matches)]]
            if len(matches) >= self.limit:
                break
        last = matches[-1].pk if len(matches) >= self.limit else id_ranges[-1].start
        readable = self._readable_pks(run.pk for run in matches)
        return [run for run in matches if run.pk in readable], last

    def page(self, older: int | None, limit: int) -> tuple[list[int], int | None]:
        """Return up to this many matches before a run, and where the next page starts."""
        if not self.is_discreet:
            self.limit = limit + 1
        matches, last = self.find(_scan_ranges(self.user, self.run_filter, older))
        pks = [match.pk for match in matches[:limit]]
        if len(matches) > limit:
            return pks, pks[-1]
        is_unread = last > 1 and Run.objects.filter(pk__lt=last).exists()
        return pks, last if is_unread else None

    def chunks(self, size: int) -> Iterator[list[int]]:
        """Yield all matches, newest first, without a limit; for exports."""
        last: int | None = None
        runs = self.runs.order_by("-pk")
        while pks := self._fetch_pks(runs if last is None else runs.filter(pk__lt=last), size):
            readable = self._readable_pks(pks)
            yield [pk for pk in pks if pk in readable]
            last = pks[-1]

    def first(self, runs: QuerySet[Run]) -> int | None:
        """Return the first readable match."""
        pks = self._fetch_pks(runs, self.limit if self.is_discreet else 1)
        readable = self._readable_pks(pks)
        return next((pk for pk in pks if pk in readable), None)

    def above(self, pk: int) -> int | None:
        """Return where the page before a run starts; None if that is the first page."""
        limit = self.limit if self.is_discreet else PAGE_SIZE + 1
        pks = self._fetch_pks(self.runs.filter(pk__gt=pk).order_by("pk"), limit)
        readable = self._readable_pks(pks)
        readable_before = [run_id for run_id in pks if run_id in readable]
        if len(readable_before) > PAGE_SIZE:
            return readable_before[PAGE_SIZE - 1] + 1
        return pks[-1] + 1 if self.is_discreet and len(pks) == limit else None

    def _fetch_pks(self, runs: QuerySet[Run], limit: int) -> list[int]:
        return list(runs.values_list("pk", flat=True)[:limit])

    def _readable_pks(self, pks: Iterable[int]) -> set[int]:
        if not self.is_discreet:
            return set(pks)
        return search_masking.readable_pks(self.user, self.run_filter, pks)


def neighbours(
    user: User, query: str, pk: int, sort: Sort | None = None
) -> tuple[int | None, int | None]:
    """Return the runs before and after one in the list: newer and older, unless sorted."""
    search = RunSearch(user, parse(query, is_reviewer=is_reviewer(user)), sort)
    if sort is not None:
        matches, _last = search.find(_scan_ranges(user, search.run_filter, None))
        pks = [None, *(match.pk for match in sorted_matches(matches, sort)), None]
        index = pks.index(pk) if pk in pks else 0
        return (pks[index - 1], pks[index + 1]) if index else (None, None)
    runs = search.runs
    if is_reviewer(user):
        runs = runs.filter(pk__range=(pk - SCAN_DISTANCES[-1], pk + SCAN_DISTANCES[-1]))
    newer = search.first(runs.filter(pk__gt=pk).order_by("pk"))
    return newer, search.first(runs.filter(pk__lt=pk).order_by("-pk"))


def is_reviewer(user: User) -> bool:
    return user.has_perm("agents.review_runs")


def _scan_ranges(user: User, run_filter: Filter, older: int | None) -> list[range]:
    """Return the id ranges to search, newest first; a user's own runs in one."""
    newest = Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    end = newest + 1
    top = min(older or end, end)
    if not run_filter.terms or not is_reviewer(user):
        return [range(0, top)]
    ends = [top, *(max(0, top - distance) for distance in SCAN_DISTANCES)]
    return [range(low, high) for high, low in pairwise(ends) if low < high]


def load_rows(pks: list[int], reader: Any, names: Collection[str] = ()) -> list[RunRow]:
    """Load these runs, in this order, as their reader can see them, for these columns."""
    runs = (
        Run.objects.filter(pk__in=pks)
        .select_related("user__profile", "api_key")
        .defer(*DEFERRED_FIELDS)
    )
    order = {pk: position for position, pk in enumerate(pks)}
    ratings = Counter(Rating.objects.filter(run__in=pks).values_list("run", "is_good"))
    flagged = set(Review.objects.open().filter(run__in=pks).values_list("run", flat=True))
    labels: dict[int, set[str]] = defaultdict(set)
    if "labels" in names:
        for pk, name in Label.objects.filter(run__in=pks).values_list("run", "name"):
            labels[pk].add(name)
    scores: dict[int, float | None] = {}
    if "score" in names:
        scored = Run.objects.filter(pk__in=pks, experiment_results__score__isnull=False)
        scores = dict(scored.values_list("pk", "experiment_results__score"))
    rows = []
    for run in sorted(load_origins(runs), key=lambda run: order[run.pk]):
        row = RunRow(
            view=RunView(run if is_participant(run, reader) else mask_row(run), place="trace"),
            ups=ratings[run.pk, True],
            downs=ratings[run.pk, False],
            is_flagged=run.pk in flagged,
            is_own=is_own(run, reader),
            labels=tuple(sorted(labels[run.pk])),
            score=scores.get(run.pk),
        )
        rows.append(row)
    return rows
