"""What a user has used today and this month, in one query."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    F,
    FloatField,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from agents.db.compiled_queries import compiled_query
from agents.db.raw_cursor import adapt_datetime
from agents.installation.setting import MICROS
from agents.models import DeletedUsage, Quota, Run

from .quota_limits import Key

Measure, Window = Quota.Measure, Quota.Window
MEASURES = (Measure.RUNS, Measure.MESSAGES, Measure.TOKENS, Measure.COST)
COLUMNS = tuple(f"{m}_{w}" for m in MEASURES for w in (Window.DAY, Window.MONTH))
ALL_COLUMNS = ("group_of", "is_unpriced", *COLUMNS)

Rows = Any  # an unevaluated part of the query


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a user has used; cost in millionths of a dollar."""

    amounts: dict[Key, int] = field(default_factory=dict)
    unpriced_runs: int = 0  # of this month, whose model has no known price
    groups: frozenset[int] = frozenset()


def day_start() -> datetime:
    """Return when the installation's day began, whichever time zone the user's pages are in."""
    now = timezone.localtime(timezone=timezone.get_default_timezone())
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def month_start() -> datetime:
    """Return when the installation's month began."""
    day = day_start().date().replace(day=1)
    return datetime(day.year, day.month, day.day, tzinfo=timezone.get_default_timezone())


def next_start(window: str) -> datetime:
    """Return when a window ends and its count starts over."""
    zone = timezone.get_default_timezone()
    today = day_start().date()
    later = today + timedelta(days=1)
    if window == Window.MONTH:
        later = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    return datetime(later.year, later.month, later.day, tzinfo=zone)


def read(user: int, since: datetime | None = None) -> Usage:
    """Return what a user has used since the month began, or since a later time."""
    day, month = day_start(), month_start()
    start = month if since is None else since
    times = [adapt_datetime(connection, time.astimezone(UTC)) for time in (day, start)]
    dates = [_adapt(time.date()) for time in (day, start)]
    rows = _usage_rows(user, *times, *dates)
    amounts: dict[Key, int] = {}
    for measure in MEASURES:
        for window in (Window.DAY, Window.MONTH):
            at = ALL_COLUMNS.index(f"{measure}_{window}")
            amounts[measure, window] = round(sum(row[at] or 0 for row in rows))
    return Usage(
        amounts=amounts,
        unpriced_runs=int(sum(row[1] or 0 for row in rows)),
        groups=frozenset(row[0] for row in rows if row[0]),
    )


def _adapt(day: date) -> Any:
    return connection.ops.adapt_datefield_value(day)


@compiled_query
def _usage_rows(
    user: int, day: datetime, start: datetime, today: date, first_day: date
) -> QuerySet[Any, tuple[Any, ...]]:
    """Return rows to be added up: of runs, messages, titles, what is deleted, and groups."""
    parts = [
        _runs(user, day, start),
        _deleted(user, today, first_day),
        *(_source(source, user, day, start) for source in sources),
        _part(Group.objects.filter(user=user).order_by().values("pk"), group_of=F("pk")),
    ]
    first: QuerySet[Any, tuple[Any, ...]] = parts[0].union(*parts[1:], all=True)
    return first


def _part(rows: Any, **amounts: Any) -> Rows:
    """Return rows with all columns of the union, zero unless given."""
    zero: Any = {name: Value(0, FloatField()) for name in ALL_COLUMNS[2:]}
    zero |= {name: Value(0, BigIntegerField()) for name in ALL_COLUMNS[:2]}
    kinds = {"group_of": BigIntegerField(), "is_unpriced": BigIntegerField()}
    typed = {
        name: Cast(amount, kinds.get(name, FloatField())) for name, amount in amounts.items()
    }
    return rows.annotate(**{**zero, **typed}).values_list(*ALL_COLUMNS)


def _runs(user: Any, day: Any, start: Any) -> Rows:
    rows = Run.objects.filter(user=user, started_at__gte=start).exclude(road=Run.IMPORTED)
    today, tokens = Q(started_at__gte=day), F("prompt_tokens") + F("completion_tokens")
    cost = Coalesce(F("cost"), 0.0) * MICROS
    return _part(
        rows.order_by().values("user"),
        is_unpriced=Count("pk", filter=Q(cost=None, prompt_tokens__gt=0)),
        runs_day=Count("pk", filter=today),
        runs_month=Count("pk"),
        tokens_day=Coalesce(Sum(tokens, filter=today), 0),
        tokens_month=Coalesce(Sum(tokens), 0),
        cost_day=Coalesce(Sum(cost, filter=today), 0.0),
        cost_month=Coalesce(Sum(cost), 0.0),
    )


def _deleted(user: Any, today: Any, first_day: Any) -> Rows:
    rows = DeletedUsage.objects.filter(user=user, day__gte=first_day)
    amounts: dict[str, Any] = {}
    for measure in MEASURES:
        of_day = Case(When(day__gte=today, then=F(measure)), default=0)
        amounts |= {f"{measure}_month": F(measure), f"{measure}_day": of_day}
    return _part(rows.order_by().values("pk"), **amounts)


def _source(source: UsageSource, user: Any, day: Any, start: Any) -> Rows:
    rows = source.rows().filter(**{source.user: user, f"{source.at}__gte": start})
    today = Q(**{f"{source.at}__gte": day})

    def count(filter: Q | None = None) -> Any:
        if not source.amount:
            return Count("pk", filter=filter)
        return Coalesce(Sum(source.amount, filter=filter), 0)

    amounts = {f"{source.measure}_day": count(today), f"{source.measure}_month": count()}
    return _part(rows.order_by().values(source.user), **amounts)
