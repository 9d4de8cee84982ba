"""How often calls of tools succeed, for agents that learn: in memory, counted in a thread.

Of a tool and its fallback, which do the same, the clearly more reliable one is called first.
That has to hold without the calls of any one person, too: a user who makes a tool fail on
purpose doesn't change what others' agents call.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Self

from django.db import connections
from django.db.models import Min
from django.utils import timezone

from agents.engine.intervals import Interval, wilson
from agents.engine.loop import Capability, RunLoop
from agents.engine.sentences import Sentence as _
from agents.engine.tool import ToolRegistry
from agents.metering import tool_calls
from agents.models import Run

logger = logging.getLogger(__name__)

WINDOW = timedelta(days=7)
INTERVAL_SECONDS = 600.0
MIN_CALLS = 20


class Reliability(NamedTuple):
    """The calls of a tool in the last days, and what its success rate can be.

    `lowest` and `highest` are the ends of its interval, whichever one person is left out.
    """

    calls: int
    failures: int
    lowest: float
    highest: float

    @classmethod
    def of(
        cls,
        per_user: Sequence[tuple[int, int]],
        *,
        without_user: tuple[int, int] = (0, 0),
        is_shared: bool = True,
    ) -> Self:
        """Return it for the calls and failures of each person.

        If only one person uses tools at all, there is no one to protect from them. Runs
        without a user are from the command line, so their calls always count.
        """
        counted = [*per_user, without_user]
        calls = sum(n for n, _failed in counted)
        failures = sum(failed for _n, failed in counted)
        without_each_user = (
            [(calls - n, failures - failed) for n, failed in per_user] if is_shared else []
        )
        # Without calls everything is possible.
        intervals = [
            wilson(n - failed, n) or Interval(0.0, 1.0)
            for n, failed in [(calls, failures), *without_each_user]
        ]
        low = min(interval.low for interval in intervals)
        high = max(interval.high for interval in intervals)
        return cls(calls, failures, low, high)

    def is_better_than(self, reference: "Reliability") -> bool:
        """Whether it is clearly more reliable: the intervals of the rates don't overlap."""
        return self.lowest > reference.highest


_known: dict[str, Reliability] = {}
_next_count = 0.0
_lock = threading.Lock()


def known() -> dict[str, Reliability]:
    """Return the tools with enough calls; they are counted again now and then."""
    global _next_count
    if time.monotonic() >= _next_count:
        _next_count = time.monotonic() + INTERVAL_SECONDS
        threading.Thread(target=_count_in_thread, name="reliability", daemon=True).start()
    return _known


def success_rates() -> dict[str, float]:
    """Return how often calls of tools may succeed, for choosing which tools a model is sent.

    The best that is possible without one person's calls, so that no user can hide a tool.
    """
    return {name: reliability.highest for name, reliability in known().items()}


class PreferredTools(Capability):
    """Lets a tool's fallback be called first if it is clearly more reliable."""

    async def tools(self, run: RunLoop, tools: ToolRegistry) -> ToolRegistry:
        rates = known()
        for name in tools.list_tools() if rates else ():
            tool: Any = tools.get(name)
            rate = rates.get(name)
            fallback_rate = rates.get(getattr(tool, "fallback_tool", None) or "")
            if rate and fallback_rate and fallback_rate.is_better_than(rate):
                tool.prefers_fallback = _(
                    "%(failures)s of %(calls)s recent calls failed.",
                    failures=rate.failures,
                    calls=rate.calls,
                )
        return tools


def count() -> dict[str, Reliability]:
    """Count the calls of the last days."""
    recent = Run.objects.filter(started_at__gte=timezone.now() - WINDOW)
    first = recent.aggregate(first=Min("pk"))["first"]
    if first is None:
        return {}
    tools: dict[str, dict[int | None, tuple[int, int]]] = defaultdict(dict)
    users: set[int] = set()
    # Results of experiments may be recorded, and drafts may call tools in other ways.
    draft_runs = Run.objects.draft_runs().filter(pk__gte=first).values("pk")
    finished = tool_calls.finished_calls().filter(run__gte=first).exclude(run__in=draft_runs)
    for name, user, calls, failures in tool_calls.count_by_tool(finished, "run__user"):
        tools[name][user] = calls, failures
        users |= {user} - {None}
    reliabilities: dict[str, Reliability] = {}
    for name, per_user in tools.items():
        without_user = per_user.pop(None, (0, 0))
        reliability = Reliability.of(
            list(per_user.values()), without_user=without_user, is_shared=len(users) > 1
        )
        if reliability.calls >= MIN_CALLS:
            reliabilities[name] = reliability
    return reliabilities


def _count_in_thread() -> None:
    global _known
    with _lock:
        try:
            _known = count()
        except Exception:  # the next time is soon enough
            logger.exception("Can't count the calls of tools.")
        finally:
            connections.close_all()
