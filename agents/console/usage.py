"""How tools have done lately: calls, errors and how long they took, in one look at the steps.

Steps have no index of their own by time. Runs are numbered in the order in which they began, so
the newest of them, up to so many, are looked through by their numbers.
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
    """A tool in the last seven days; `median` is in seconds."""

    calls: int
    errors: int
    median: float
    last: datetime

    @property
    def error_rate(self) -> float:
        return self.errors / self.calls


class _UsageCache:
    """All of them by name, looked at once a minute however many pages ask."""

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


lately = _UsageCache()


def load_usage() -> dict[str, ToolUsage]:
    """Each tool that was called; the row in the middle of its calls has their median."""
    of_one = {"partition_by": F("action")}
    seconds = F("ended_at") - F("started_at")
    calls = _recent_calls().annotate(
        took=seconds,
        place=Window(RowNumber(), order_by=seconds.asc(), **of_one),
        calls=Window(Count("pk"), **of_one),
        errors=Window(Count("pk", filter=Q(status=AgentStep.Status.FAILED)), **of_one),
        last=Window(Max("started_at"), **of_one),
    )
    middle = calls.filter(place=(F("calls") + 1) / 2)
    found = middle.values_list("action", "calls", "errors", "took", "last")
    return {
        action: ToolUsage(calls=calls, errors=errors, median=took.total_seconds(), last=last)
        for action, calls, errors, took, last in found
    }


def _recent_calls() -> QuerySet[AgentStep]:
    """Those that were made; what a run only repeats of another was made there."""
    since = timezone.now() - RECENT_PERIOD
    calls = AgentStep.objects.order_by().filter(
        run__gte=_oldest_run_id(since),
        kind=AgentStep.Kind.TOOL,
        status__in=CALL_STATUSES,
        started_at__gte=since,
        ended_at__isnull=False,
    )
    return calls.exclude(number__lt=F("run__origin_step"))


def _oldest_run_id(since: datetime) -> int:
    """The number from which on runs are looked at."""
    newest = Run.objects.order_by("-pk").values_list("pk", flat=True)
    runs = Run.objects.filter(started_at__gte=since).aggregate(first=Min("pk"))
    oldest = newest[MAX_RUNS - 1 : MAX_RUNS].first()
    return max(runs["first"] or 0, oldest or 0)
