"""What runs, messages and titles say was used: for counters that begin within a window."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Sum

from agents.models import AgentStep, LanguageModel, Run, ToolRegistration

from .limits import ALL
from .measures import MEASURES, MILLISECONDS

Amounts = dict[str, int]
NOTHING: Amounts = dict.fromkeys(MEASURES, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSource:
    """Rows outside of this package that count; an empty amount counts the rows."""

    measure: str
    rows: Callable[[], QuerySet[Any]]
    user: str
    at: str
    amount: str = ""


# The chat's messages and titles.
sources: list[UsageSource] = []


def read(scope: str, since: datetime) -> Amounts:
    """Return what rows say about a scope since then, as far as they say it."""
    kind, _, number = scope.partition(":")
    pk = int(number or 0)
    if kind == "tool":
        return _tool_amounts(pk, since)
    columns = {key: measure.recorded for key, measure in MEASURES.items() if measure.recorded}
    sums = _runs(kind, pk).filter(started_at__gte=since).aggregate(**columns)
    amounts = NOTHING | {
        key: round((value or 0) * MEASURES[key].unit) for key, value in sums.items()
    }
    if kind not in {"user", "group", ALL}:
        return amounts
    for source in sources:
        rows = source.rows().filter(**{f"{source.at}__gte": since}).order_by()
        if kind != ALL:
            users = User.objects.filter(Q(pk=pk) if kind == "user" else Q(groups=pk))
            rows = rows.filter(**{f"{source.user}__in": users.values("pk")})
        if source.amount:
            amount = rows.aggregate(total=Sum(source.amount))["total"] or 0
        else:
            amount = rows.count()
        amounts[source.measure] += amount
    return amounts


def _runs(kind: str, pk: int) -> QuerySet[Run]:
    runs = Run.objects.executed().order_by()
    match kind:
        case "user":
            return runs.filter(user=pk)
        case "group":
            return runs.filter(user__groups=pk)
        case "agent":
            return runs.filter(agent=pk)
        case "key":
            return runs.filter(api_key=pk)
        case "model":
            names = LanguageModel.objects.filter(pk=pk).values_list("label", "model").first()
            return runs.filter(model__in=names or ())
    return runs


def _tool_amounts(pk: int, since: datetime) -> Amounts:
    name = ToolRegistration.objects.filter(pk=pk).values("name")
    duration = ExpressionWrapper(F("ended_at") - F("started_at"), DurationField())
    steps = AgentStep.objects.filter(
        kind=AgentStep.Kind.TOOL, action__in=name, started_at__gte=since
    )
    sums = steps.order_by().aggregate(calls=Count("pk"), took=Sum(duration))
    seconds = (sums["took"] or timedelta()).total_seconds()
    return NOTHING | {"calls": sums["calls"], "seconds": round(seconds * MILLISECONDS)}
