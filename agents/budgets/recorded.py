"""What runs, messages and titles say was used: for counters that begin within a window."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Sum
from django.utils import timezone

from agents.installation.setting import MICROS
from agents.models import AgentStep, DeletedUsage, LanguageModel, Quota, Run, ToolRegistration

from .limits import ALL, MILLISECONDS

Measure = Quota.Measure
Amounts = dict[str, int]
NOTHING: Amounts = {measure.value: 0 for measure in Measure}


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
    amounts = NOTHING | _run_amounts(_runs(kind, pk).filter(started_at__gte=since))
    if kind in {"user", "group", ALL}:
        user_filter = _user_filter(kind, pk)
        for source in sources:
            amounts[source.measure] += _source_amount(source, user_filter, since)
        for measure, amount in _deleted_amounts(user_filter, since).items():
            amounts[measure] += amount
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
        case "model":
            names = LanguageModel.objects.filter(pk=pk).values_list("label", "model").first()
            return runs.filter(model__in=names or ())
    return runs


def _run_amounts(runs: QuerySet[Run]) -> Amounts:
    found = runs.aggregate(
        runs=Count("pk"),
        calls=Sum(F("turns") + F("tool_calls")),
        tokens=Sum(F("prompt_tokens") + F("completion_tokens")),
        cost=Sum("cost"),
        seconds=Sum(F("seconds") - F("waited")),
    )
    scales = {"cost": MICROS, "seconds": MILLISECONDS}
    return {name: round((value or 0) * scales.get(name, 1)) for name, value in found.items()}


def _tool_amounts(pk: int, since: datetime) -> Amounts:
    name = ToolRegistration.objects.filter(pk=pk).values("name")
    duration = ExpressionWrapper(F("ended_at") - F("started_at"), DurationField())
    steps = AgentStep.objects.filter(
        kind=AgentStep.Kind.TOOL, action__in=name, started_at__gte=since
    )
    found = steps.order_by().aggregate(calls=Count("pk"), took=Sum(duration))
    seconds = (found["took"] or timedelta()).total_seconds()
    return NOTHING | {"calls": found["calls"], "seconds": round(seconds * MILLISECONDS)}


def _user_filter(kind: str, pk: int) -> Q | None:
    """Return a filter for the scope's users; None for all."""
    if kind == ALL:
        return None
    return Q(pk=pk) if kind == "user" else Q(groups=pk)


def _source_amount(source: UsageSource, user_filter: Q | None, since: datetime) -> int:
    rows = source.rows().filter(**{f"{source.at}__gte": since}).order_by()
    rows = _filter_users(rows, source.user, user_filter)
    if not source.amount:
        return rows.count()
    return rows.aggregate(total=Sum(source.amount))["total"] or 0


def _deleted_amounts(user_filter: Q | None, since: datetime) -> Amounts:
    """Return what an earlier version saved about deleted runs of this window."""
    day = since.astimezone(timezone.get_default_timezone()).date()
    rows = _filter_users(DeletedUsage.objects.filter(day__gte=day), "user", user_filter)
    totals = {name: Sum(name) for name in ("runs", "messages", "tokens", "cost")}
    return {name: value or 0 for name, value in rows.aggregate(**totals).items()}


def _filter_users(rows: QuerySet[Any], column: str, user_filter: Q | None) -> QuerySet[Any]:
    if user_filter is None:
        return rows
    return rows.filter(**{f"{column}__in": User.objects.filter(user_filter).values("pk")})
