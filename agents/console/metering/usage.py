"""Recent tool usage: calls, errors and durations."""

from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from time import monotonic

from django.utils import timezone

from agents.metering.figures import catch_up
from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.selection import Selection, Viewer
from agents.metering.figures.totals import Totals
from agents.metering.figures.windows import last_days

RECENT_DAYS = 7
CACHE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsage:
    """A tool's last seven days, and when the newest run with it began."""

    totals: Totals
    last: datetime | None


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
    """Return the usage of each called tool."""
    catch_up.catch_up_for_page()
    query = FiguresQuery(Viewer(None), last_days(RECENT_DAYS, timezone.now()), Selection())
    last = query.last_started(By.TOOL)
    return {
        name: ToolUsage(totals=totals, last=last.get(name))
        for (name,), totals in query.split(By.TOOL).items()
        if totals["tool_calls"]
    }
