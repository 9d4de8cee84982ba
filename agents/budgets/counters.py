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
from .recorded import Amounts
from .windows import window_start

Measure, Window = Quota.Measure, Quota.Window
Place = tuple[str, str, datetime]  # scope, window and its start
HELD = ("calls", "tokens", "cost", "seconds")
# Of an expired hold, what its call had used when its process was last heard of.
USED = {
    "calls": "calls",
    "tokens": "used_tokens",
    "cost": "used_cost",
    "seconds": "used_seconds",
}
HOLD_COLUMNS = ("counter", "expires_at", *HELD, *(USED[name] for name in HELD))
KEPT = {Window.MINUTE: timedelta(hours=1), Window.DAY: timedelta(days=40)}
KEPT_MONTHS = timedelta(days=400)


@dataclass(slots=True, kw_only=True)
class Count:
    """What a window has used, and what calls in progress may still use of it."""

    pk: int
    spent: Amounts
    held: Amounts


def place_of(limit: Limit, at: datetime) -> Place:
    """Return the counter that a limit reads at this time."""
    return limit.scope, limit.window, window_start(limit.window, at)


def places_of(limits: Iterable[Limit], at: datetime) -> list[Place]:
    """Return the counters of these limits."""
    return sorted({place_of(limit, at) for limit in limits})


def lock(limits: Sequence[Limit], at: datetime) -> dict[Place, Count]:
    """Lock the counters of these limits and read them; missing ones are created first.

    What calls hold is read by a later statement than the lock: on PostgreSQL a statement sees
    what was committed before it began, not before it got its lock.
    """
    places = places_of(limits, at)
    if not _known.issuperset(places):
        # Before locking: a process that waits for another one's insert must not hold a lock.
        _create_missing(places, _rows(places), at)
    rows = _locked(places)
    if len(rows) < len(places):  # known, but deleted meanwhile
        _create_missing(places, rows.values(), at)
        rows = _locked(places)
    _remember(places)
    _seed_again(rows, limits, at)
    return _counts(rows, at, counts_expired=True)


# Counters that exist, as far as this process has locked them.
_known: set[Place] = set()
MAX_KNOWN = 10_000


def forget_known() -> None:
    _known.clear()


def _remember(places: Collection[Place]) -> None:
    if len(_known) > MAX_KNOWN:
        _known.clear()
    _known.update(places)


def read(limits: Sequence[Limit], at: datetime) -> dict[Place, Count]:
    """Return the counters of these limits without changing any."""
    places = places_of(limits, at)
    counts = _counts(_by_place(_rows(places)), at)
    for place in places:
        if place not in counts:
            counts[place] = Count(pk=0, spent=_seed(place), held={})
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


def delete_old(at: datetime) -> None:
    """Delete counters that no limit reads any more."""
    BudgetHold.objects.filter(expires_at__lt=at - timedelta(days=1)).delete()
    for window in Window:
        since = at - KEPT.get(window, KEPT_MONTHS)
        old = BudgetCounter.objects.filter(window=window, start__lt=since)
        old.exclude(holds__isnull=False).delete()


def _rows(places: Collection[Place]) -> QuerySet[BudgetCounter]:
    wanted = Q(pk__in=())
    for scope, window, start in places:
        wanted |= Q(scope=scope, window=window, start=start)
    return BudgetCounter.objects.filter(wanted)


def _by_place(rows: Iterable[BudgetCounter]) -> dict[Place, BudgetCounter]:
    return {(row.scope, row.window, row.start): row for row in rows}


def _locked(places: Collection[Place]) -> dict[Place, BudgetCounter]:
    return _by_place(lock_rows(_rows(places)))


def _create_missing(
    places: Sequence[Place], there: Iterable[BudgetCounter], at: datetime
) -> None:
    """Create counters unless another process was first, in the order in which all lock."""
    known = _by_place(there)
    missing = sorted((place for place in places if place not in known), reverse=True)
    rows = [
        BudgetCounter(scope=scope, window=window, start=start, seeded_at=at, **seed)
        for scope, window, start in missing
        for seed in [_seed((scope, window, start))]
    ]
    if rows:
        BudgetCounter.objects.bulk_create(rows, ignore_conflicts=True)


def _seed(place: Place) -> Amounts:
    """Return recorded usage; a minute is over before that would matter."""
    scope, window, start = place
    return dict(recorded.NOTHING) if window == Window.MINUTE else recorded.read(scope, start)


def _seed_again(
    rows: Mapping[Place, BudgetCounter], limits: Sequence[Limit], at: datetime
) -> None:
    """Raise the counters of changed limits to recorded usage.

    While a scope had no limit, nothing was counted. The counter may know more than the rows,
    of which some may be deleted.
    """
    for limit in limits:
        row = rows[place_of(limit, at)]
        if limit.changed_at is None or (row.seeded_at and row.seeded_at >= limit.changed_at):
            continue
        for name, amount in _seed(place_of(limit, at)).items():
            setattr(row, name, max(getattr(row, name), amount))
        row.seeded_at = max(at, limit.changed_at)
        row.save()


def _counts(
    rows: Mapping[Place, BudgetCounter], at: datetime, *, counts_expired: bool = False
) -> dict[Place, Count]:
    """Return what is used and held; what expired holds had used counts as used."""
    pks = [row.pk for row in rows.values()]
    held, expired = _held(pks, at)
    if expired and counts_expired:
        _count_expired(expired, at)
    return {
        place: Count(
            pk=row.pk,
            spent={
                m.value: getattr(row, m) + expired.get(row.pk, {}).get(m, 0) for m in Measure
            },
            held=held.get(row.pk, {}),
        )
        for place, row in rows.items()
    }


def _held(pks: Sequence[int], at: datetime) -> tuple[dict[int, Amounts], dict[int, Amounts]]:
    """Return what calls in progress hold, and what those whose processes are gone had used."""
    held: dict[int, Amounts] = {}
    gone: dict[int, Amounts] = {}
    holds = BudgetHold.objects.filter(counter__in=pks, is_counted=False)
    for counter, expires_at, *amounts in holds.values_list(*HOLD_COLUMNS):
        is_gone = expires_at <= at
        part = amounts[len(HELD) :] if is_gone else amounts[: len(HELD)]
        total = (gone if is_gone else held).setdefault(counter, dict.fromkeys(HELD, 0))
        for name, amount in zip(HELD, part, strict=True):
            total[name] += amount
    return held, gone


def _count_expired(expired: Mapping[int, Amounts], at: datetime) -> None:
    """Count what calls had used whose processes are gone; a late one settles the rest."""
    for pk, amounts in expired.items():
        add([pk], amounts)
    gone = BudgetHold.objects.filter(counter__in=expired, is_counted=False, expires_at__lte=at)
    gone.update(is_counted=True)
