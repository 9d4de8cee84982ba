"""Runs over a period, compared with the period before: counted by the database.

The runs of a period are read once, from an index that has all columns (`finished_runs`), and
grouped by bucket, agent and class of latency. Nothing is read run by run, so that the page is
fast with hundreds of thousands of runs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from heapq import nlargest
from operator import itemgetter
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Sum, Value, When
from django.db.models.lookups import LessThan
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models import Run
from agents.models.runs import ACTIVE_SECONDS, RunQuerySet
from agents.models.types import LazyText

FAILED_COUNT = Count("pk", filter=Q(status=Run.Status.FAILED))
SPENT = Sum("cost", default=0.0)
PERCENTILE = 0.95
# Classes of latency in seconds, each a quarter longer than the one before.
FIRST_LATENCY, LATENCY_FACTOR, LATENCY_CLASSES = 0.05, 1.25, 56
LATENCY_EDGES = [FIRST_LATENCY * LATENCY_FACTOR**n for n in range(LATENCY_CLASSES)]
# Up to so many runs the percentile is exact; of more, classes are just as good.
MAX_SORTED = 20_000
MAX_AGENTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A choice of the page: hours until now, or calendar days with today, as on the dashboard.

    Days are those of the installation's time zone, so that both pages count the same runs.
    """

    key: str
    label: LazyText
    sentence: LazyText
    span: timedelta
    buckets: int
    has_days: bool = True

    def start(self, now: datetime) -> datetime:
        if not self.has_days:
            return now - self.span
        zone = timezone.get_default_timezone()
        first = timezone.localtime(now, zone).date() - self.span + timedelta(days=1)
        return timezone.make_aware(datetime.combine(first, time.min), zone)

    def edges(self, now: datetime) -> list[datetime]:
        """Return where each bucket begins; of today, those that have begun."""
        start, step = self.start(now), self.span / self.buckets
        edges = [start + step * number for number in range(self.buckets)]
        return [edge for edge in edges if edge <= now]


PERIODS = {
    period.key: period
    for period in (
        Period(
            key="24h",
            label=_("24 h"),
            sentence=_("Last 24 hours, compared with the 24 hours before"),
            span=timedelta(hours=24),
            buckets=24,
            has_days=False,
        ),
        Period(
            key="7d",
            label=_("7 days"),
            sentence=_("Last 7 days, compared with the 7 days before"),
            span=timedelta(days=7),
            buckets=28,
        ),
        Period(
            key="30d",
            label=_("30 days"),
            sentence=_("Last 30 days, compared with the 30 days before"),
            span=timedelta(days=30),
            buckets=30,
        ),
    )
}
DEFAULT_PERIOD = "7d"


@dataclass(slots=True)
class RunTotals:
    """Finished runs of a bucket; `latencies` counts them by class."""

    runs: int = 0
    failed: int = 0
    cost: float = 0.0
    latencies: Counter[int] = field(default_factory=Counter)

    def add(self, row: Mapping[str, Any]) -> None:
        self.runs += row["runs"]
        self.failed += row["failed"]
        self.cost += row["cost"] or 0.0
        self.latencies[row["latency"]] += row["runs"]

    @property
    def error_rate(self) -> float | None:
        return self.failed / self.runs if self.runs else None

    @property
    def p95(self) -> float | None:
        """The 95th percentile of active seconds, as if runs were spread evenly in a class."""
        rank = self.runs * PERCENTILE
        below = 0
        for number in sorted(self.latencies):
            count = self.latencies[number]
            if below + count >= rank:
                share = (rank - below) / count
                return float(FIRST_LATENCY * LATENCY_FACTOR ** (number - 1 + share))
            below += count
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCost:
    name: str
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """A period in buckets, its total and the total before."""

    buckets: list[RunTotals]
    now: RunTotals
    before: RunTotals
    live: int
    p95: float | None
    p95_before: float | None
    agents: list[AgentCost]

    @property
    def is_empty(self) -> bool:
        return not (self.now.runs or self.before.runs or self.live)


def load_figures(runs: RunQuerySet, period: Period, now: datetime) -> RunFigures:
    """Count these runs, in at most five queries."""
    edges = period.edges(now)
    # Imported answers have no duration: nothing was executed here.
    finished = runs.filter(seconds__isnull=False).order_by()
    recent = finished.filter(started_at__gte=edges[0])
    older = finished.filter(
        started_at__gte=period.start(now - period.span), started_at__lt=now - period.span
    )
    buckets = [RunTotals() for _edge in edges]
    total = RunTotals()
    cost_by_agent: dict[str, float] = defaultdict(float)
    for row in _grouped(recent, edges):
        for totals in (total, buckets[row["bucket"]]):
            totals.add(row)
        cost_by_agent[row["agent_name"]] += row["cost"] or 0.0
    before = _total(older)
    live = runs.live().filter(started_at__gte=edges[0]).count()
    return RunFigures(
        buckets=buckets,
        now=total,
        before=before,
        live=live,
        p95=_exact_p95(recent, total.runs) if total.runs <= MAX_SORTED else total.p95,
        p95_before=_exact_p95(older, before.runs),
        agents=[
            AgentCost(name=name, cost=cost)
            for name, cost in nlargest(MAX_AGENTS, cost_by_agent.items(), key=itemgetter(1))
            if cost
        ],
    )


def _grouped(runs: QuerySet[Run], edges: Sequence[datetime]) -> Iterable[Mapping[str, Any]]:
    bucket = bucket_of("started_at", edges[1:], range(len(edges)))
    latency = bucket_of("worked", LATENCY_EDGES, range(LATENCY_CLASSES + 1))
    return (
        runs.annotate(worked=ACTIVE_SECONDS, bucket=bucket, latency=latency)
        .values("bucket", "latency", "agent_name")
        .annotate(runs=Count("pk"), failed=FAILED_COUNT, cost=Sum("cost"))
    )


def _total(runs: QuerySet[Run]) -> RunTotals:
    return RunTotals(**runs.aggregate(runs=Count("pk"), failed=FAILED_COUNT, cost=SPENT))


def bucket_of(column: str, edges: Sequence[Any], numbers: Sequence[int]) -> Any:
    """Return an expression for the bucket of a value, as a binary search.

    Unlike truncated times it is the same on every database, and SQLite needs no function in
    Python for it.
    """
    if not edges:
        return Value(numbers[0])
    middle = len(edges) // 2
    below = bucket_of(column, edges[:middle], numbers[: middle + 1])
    above = bucket_of(column, edges[middle + 1 :], numbers[middle + 1 :])
    is_below = When(LessThan(F(column), edges[middle]), then=below)
    return Case(is_below, default=above, output_field=IntegerField())


def _exact_p95(runs: QuerySet[Run], count: int) -> float | None:
    """Return the percentile of active seconds: the database keeps only the slowest runs."""
    if not count:
        return None
    slower = count - 1 - min(count - 1, int(count * PERCENTILE))
    slowest = runs.order_by(ACTIVE_SECONDS.desc()).values_list(ACTIVE_SECONDS, flat=True)
    seconds = slowest[slower : slower + 1].first()
    return None if seconds is None else max(0.0, seconds)
