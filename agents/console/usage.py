"""Recent tool usage: calls, errors and durations, in one query of the steps.

Steps have no index by time. Run ids are chronological, so the newest runs, up to a limit, are
selected by id.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from time import monotonic

from django.db.models import Count, F, Max, Min, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from agents.models import AgentStep, Run

RECENT_PERIOD = timedelta(days=7)
MAX_RUNS = 20_000
CACHE_SECONDS = 60.0
CALL_STATUSES = (AgentStep.Status.DONE, AgentStep.Status.FAILED, AgentStep.Status.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsage:
    """A tool's last seven days; `median` is in seconds."""

    calls: int
    errors: int
    median: float
    last: datetime

    @property
    def error_rate(self) -> float:
        return self.errors / self.calls


class _UsageCache:
    """All usage by name, queried at most once a minute."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, ToolUsage] = {}
        self._until = 0.0

    def __call__(self) -> dict[str, ToolUsage]:
        with self._lock:
            if monotonic() >= self._until:
                self._known = load_usage()
                self._until = monotonic() + CACHE_SECONDS
            return self._known

    def forget(self) -> None:
        self._until = 0.0


usage_cache = _UsageCache()


def load_usage() -> dict[str, ToolUsage]:
    """Return the usage of each called tool; the middle row of its calls has the median."""
    action = F("action")
    seconds = F("ended_at") - F("started_at")
    calls = _recent_calls().annotate(
        took=seconds,
        place=Window(RowNumber(), partition_by=action, order_by=seconds.asc()),
        calls=Window(Count("pk"), partition_by=action),
        errors=Window(
            Count("pk", filter=Q(status=AgentStep.Status.FAILED)), partition_by=action
        ),
        last=Window(Max("started_at"), partition_by=action),
    )
    middle = calls.filter(place=(F("calls") + 1) / 2)
    found = middle.values_list("action", "calls", "errors", "took", "last")
    return {
        action: ToolUsage(calls=calls, errors=errors, median=took.total_seconds(), last=last)
        for action, calls, errors, took, last in found
    }


def _recent_calls() -> QuerySet[AgentStep]:
    """Return recent calls, without those replayed from another run."""
    since = timezone.now() - RECENT_PERIOD
    calls = AgentStep.objects.order_by().filter(
        run__gte=oldest_run_id(since),
        kind=AgentStep.Kind.TOOL,
        status__in=CALL_STATUSES,
        started_at__gte=since,
        ended_at__isnull=False,
        attempts__gt=0,  # results from the cache take no time
    )
    return calls.exclude(number__lt=F("run__origin_step"))


def oldest_run_id(since: datetime) -> int:
    """Return the first run id to include."""
    newest = Run.objects.order_by("-pk").values_list("pk", flat=True)
    runs = Run.objects.filter(started_at__gte=since).aggregate(first=Min("pk"))
    oldest = newest[MAX_RUNS - 1 : MAX_RUNS].first()
    return max(runs["first"] or 0, oldest or 0)
