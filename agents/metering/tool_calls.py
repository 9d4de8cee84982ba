"""How calls of tools ended: for suggestions and for the choice between equivalent tools."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Q, QuerySet

from agents.models import AgentStep

Status = AgentStep.Status


def finished_calls() -> QuerySet[AgentStep]:
    """Return the calls of tools that were made, in all runs."""
    made = AgentStep.objects.filter(kind=AgentStep.Kind.TOOL)
    return made.filter(status__in=[Status.DONE, Status.FAILED]).order_by()


def count_by_tool(
    calls: QuerySet[AgentStep], column: str
) -> Iterator[tuple[str, Any, int, int]]:
    """Yield each tool, each value of the column, and how many calls were made and failed.

    A call that was rescued by a fallback is a call of the fallback and a failure of the tool.
    """
    made: Counter[tuple[str, Any]] = Counter()
    failed: Counter[tuple[str, Any]] = Counter()
    failures = Count("pk", filter=Q(status=Status.FAILED))
    rows = calls.values_list("action", column).annotate(Count("pk"), failures=failures)
    for tool, value, count, failure_count in rows:
        made[tool, value] += count
        failed[tool, value] += failure_count
    rescued = calls.exclude(failed_tool="").values_list("failed_tool", column)
    for tool, value, count in rescued.annotate(Count("pk")):
        made[tool, value] += count
        failed[tool, value] += count
    for (tool, value), count in made.items():
        yield tool, value, count, failed[tool, value]
