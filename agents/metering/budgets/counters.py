"""Counters of windows: found or created, locked in one order, seeded with recorded usage."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import F, Q, QuerySet

from agents.models import BudgetCounter, BudgetHold, Quota

from . import recorded
from .limits import Limit
from .measures import HELD, MEASURES
from .recorded import Amounts
from .windows import window_start

Window = Quota.Window
CounterKey = tuple[str, str, datetime]  # scope, window and its start
# Of an expired hold, what its call had used when its process was last heard of.
HOLD_COLUMNS = ("counter", "expires_at", *HELD, *(MEASURES[key].used_column for key in HELD))
KEPT = {Window.MINUTE: timedelta(hours=1), Window.DAY: timedelta(days=40)}
KEPT_MONTHS = timedelta(days=400)


@dataclass(slots=True, kw_only=True)
class Count:
    """What a window has used, and what calls in progress may still use of it."""

    pk: int
    spent: Amounts
    held: Amounts


def counter_key(limit: Limit, moment: datetime) -> CounterKey:
    """Return the counter that a limit reads at this time."""
    return limit.scope, limit.window, window_start(limit.window, moment)


def counter_keys(limits: Iterable[Limit], moment: datetime) -> list[CounterKey]:
    """Return the counters of these limits."""
    return sorted({counter_key(limit, moment) for limit in limits})


def lock(limits: Sequence[Limit], moment: datetime) -> dict[CounterKey, Count]:
    """Lock the counters of these limits and read them; missing ones are created first.

    What calls hold is read by a later statement than the lock: on PostgreSQL a statement sees
    what was committed before it began, not before it got its lock.
    """
    keys = counter_keys(limits, moment)
    if not _known.issuperset(keys):
        # Before locking: a process that waits for another one's insert must not hold a lock.
        _create_missing(keys, _rows(keys), moment)
    rows = _locked(keys)
    if len(rows) < len(keys):  # known, but deleted meanwhile
        _create_missing(keys, rows.values(), moment)
        rows = _locked(keys)
    if len(_known) > MAX_KNOWN:
        _known.clear()
    _known.update(keys)
    _seed_again(rows, limits, moment)
    return _counts(rows, moment, counts_expired=True)


# Counters that exist, as far as this process has locked them.
_known: set[CounterKey] = set()
MAX_KNOWN = 10_000


def read(limits: Sequence[Limit], moment: datetime) -> dict[CounterKey, Count]:
    """Return the counters of these limits without changing any."""
    keys = counter_keys(limits, moment)
    counts = _counts(_by_key(_rows(keys)), moment)
    for key in keys:
        if key not in counts:
            counts[key] = Count(pk=0, spent=_seed(key), held={})
    return counts


def add(pks: Collection[int], amounts: Mapping[str, int]) -> None:
    """Add to counters that are locked."""
    changes: dict[str, Any] = {
        name: F(name) + amount for name, amount in amounts.items() if amount
    }
    if pks and changes:
        BudgetCounter.objects.filter(pk__in=pks).update(**changes)


def lock_rows(rows: QuerySet[BudgetCounter]) -> list[BudgetCounter]:
    """Lock counters, always in the same order.

    Those of users, groups and all come before those of agents, because a message is counted
    before it is known which agent answers.
    """
    rows = rows.order_by("-scope", "pk")
    if connection.features.has_select_for_update:  # SQLite has one writer at a time
        rows = rows.select_for_update()
    return list(rows)


def delete_scope(scope: str) -> None:
    """Delete what was counted of a scope that is gone."""
    BudgetCounter.objects.filter(scope=scope).delete()


def delete_old(moment: datetime) -> None:
    """Delete counters that no limit reads any more."""
    BudgetHold.objects.filter(expires_at__lt=moment - timedelta(days=1)).delete()
    for window in Window:
        since = moment - KEPT.get(window, KEPT_MONTHS)
        old = BudgetCounter.objects.filter(window=window, start__lt=since)
        old.exclude(holds__isnull=False).delete()


def _rows(keys: Collection[CounterKey]) -> QuerySet[BudgetCounter]:
    condition = Q(pk__in=())
    for scope, window, start in keys:
        condition |= Q(scope=scope, window=window, start=start)
    return BudgetCounter.objects.filter(condition)


def _by_key(rows: Iterable[BudgetCounter]) -> dict[CounterKey, BudgetCounter]:
    return {(row.scope, row.window, row.start): row for row in rows}


def _locked(keys: Collection[CounterKey]) -> dict[CounterKey, BudgetCounter]:
    return _by_key(lock_rows(_rows(keys)))


def _create_missing(
    keys: Sequence[CounterKey], existing: Iterable[BudgetCounter], moment: datetime
) -> None:
    """Create counters unless another process was first, in the order in which all lock."""
    existing_keys = _by_key(existing)
    missing = sorted((key for key in keys if key not in existing_keys), reverse=True)
    rows = [
        BudgetCounter(scope=scope, window=window, start=start, seeded_at=moment, **seed)
        for scope, window, start in missing
        for seed in [_seed((scope, window, start))]
    ]
    if rows:
        BudgetCounter.objects.bulk_create(rows, ignore_conflicts=True)


def _seed(key: CounterKey) -> Amounts:
    """Return recorded usage; a minute is over before that would matter."""
    scope, window, start = key
    return dict(recorded.NOTHING) if window == Window.MINUTE else recorded.read(scope, start)


def _seed_again(
    rows: Mapping[CounterKey, BudgetCounter], limits: Sequence[Limit], moment: datetime
) -> None:
    """Raise the counters of changed limits to recorded usage.

    While a scope had no limit, nothing was counted. The counter may know more than the rows,
    of which some may be deleted.
    """
    for limit in limits:
        row = rows[counter_key(limit, moment)]
        if limit.changed_at is None or (row.seeded_at and row.seeded_at >= limit.changed_at):
            continue
        for name, amount in _seed(counter_key(limit, moment)).items():
            setattr(row, name, max(getattr(row, name), amount))
        row.seeded_at = max(moment, limit.changed_at)
        row.save()


def _counts(
    rows: Mapping[CounterKey, BudgetCounter], moment: datetime, *, counts_expired: bool = False
) -> dict[CounterKey, Count]:
    """Return what is used and held; what expired holds had used counts as used."""
    pks = [row.pk for row in rows.values()]
    held, expired = _held(pks, moment)
    if counts_expired and expired:
        # The processes of these calls are gone; a late one settles the rest.
        for pk, amounts in expired.items():
            add([pk], amounts)
        expired_holds = BudgetHold.objects.filter(
            counter__in=expired, is_counted=False, expires_at__lte=moment
        )
        expired_holds.update(is_counted=True)
    return {
        key: Count(
            pk=row.pk,
            spent={
                key: getattr(row, key) + expired.get(row.pk, {}).get(key, 0) for key in MEASURES
            },
            held=held.get(row.pk, {}),
        )
        for key, row in rows.items()
    }


def _held(
    pks: Sequence[int], moment: datetime
) -> tuple[dict[int, Amounts], dict[int, Amounts]]:
    """Return what calls in progress hold, and what those whose processes are gone had used."""
    held: dict[int, Amounts] = {}
    expired: dict[int, Amounts] = {}
    holds = BudgetHold.objects.filter(counter__in=pks, is_counted=False)
    for counter, expires_at, *amounts in holds.values_list(*HOLD_COLUMNS):
        is_expired = expires_at <= moment
        columns = amounts[len(HELD) :] if is_expired else amounts[: len(HELD)]
        total = (expired if is_expired else held).setdefault(counter, dict.fromkeys(HELD, 0))
        for name, amount in zip(HELD, columns, strict=True):
            total[name] += amount
    return held, expired
