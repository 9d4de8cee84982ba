"""Reservations: made before a call in one transaction over all its limits, settled after it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.db.compiled_queries import compiled_query
from agents.db.conflicts import retry_on_conflict
from agents.engine.spending import Refusal, RefusalReason
from agents.models import BudgetCounter, BudgetHold

from . import counters, limits, refusals
from .counters import Count
from .limits import Limit
from .measures import HELD, MEASURES, Estimate, Measure, Used
from .payers import Payer
from .windows import window_end

# A live process renews its holds three times in this time; see `gate`.
HOLD_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A reservation that is settled once; `estimate` is what it holds of its `counters`.

    In the counters `untimed`, its time isn't added, because it is part of the call around it.
    """

    call: uuid.UUID
    estimate: Estimate = field(default_factory=Estimate)
    counters: frozenset[int] = frozenset()
    untimed: frozenset[int] = frozenset()


def find_limits(payer: Payer, *, model: str = "", tool: str = "") -> list[Limit]:
    """Return the limits on what a call uses; with limits of groups, this is a query."""
    applicable = limits.limits_for(payer, groups_of(payer.user), model=model, tool=tool)
    return [limit for limit in applicable if limit.measure in HELD]


def groups_of(user: int | None) -> list[int]:
    """Return a user's groups, if these decide about limits."""
    if user is None or not limits.needs_groups():
        return []
    return _group_pks(user)


@compiled_query
def _group_pks(user: int) -> QuerySet[Group, int]:
    return Group.objects.filter(user=user).order_by("pk").values_list("pk", flat=True)


@retry_on_conflict
def reserve(
    payer: Payer,
    estimate: Estimate,
    *,
    model: str = "",
    tool: str = "",
    timed: frozenset[int] = frozenset(),
) -> Hold | None:
    """Reserve what a call may use of all its limits, or raise QuotaExceeded.

    Returns None if no limit applies. `timed` are counters of a call around this one, which
    include its time.
    """
    applicable = find_limits(payer, model=model, tool=tool)
    if not applicable:
        return None
    call = uuid.uuid4()
    current_time = timezone.now()
    with transaction.atomic():
        counts = counters.lock(applicable, current_time)
        refused = [
            refusal
            for limit in applicable
            for count in [counts[counters.counter_key(limit, current_time)]]
            if not (limit.measure == Measure.SECONDS and count.pk in timed)
            and (refusal := _refusal(limit, count, estimate, current_time, model))
        ]
        if refused:
            raise refusals.error(refusals.most_lasting(refused))
        pks = frozenset(count.pk for count in counts.values())
        hold = Hold(call=call, estimate=estimate, counters=pks, untimed=pks & timed)
        rows = [
            BudgetHold(
                call=call,
                counter_id=pk,
                run=payer.run,
                expires_at=current_time + timedelta(seconds=HOLD_SECONDS),
                **_used_columns(estimate.least()),
                **_for_counter(hold, pk, estimate.held()),
            )
            for pk in sorted(pks)
        ]
        BudgetHold.objects.bulk_create(rows)
    return hold


def _refusal(
    limit: Limit, count: Count, estimate: Estimate, current_time: datetime, model: str
) -> Refusal | None:
    """Return why a limit refuses a call, or None.

    A call is admitted if what it may use fits, or if it is the only one and what it uses at
    least fits: so a limit is exceeded by one call at most, and none waits for what it would
    hardly ever use.
    """
    amount = limit.amount or 0
    measure = limit.measure
    spent = count.spent.get(measure, 0)
    held = count.held.get(measure, 0)
    needed = estimate.held()[measure]
    least = estimate.least()[measure]

    def refuse(reason: RefusalReason) -> Refusal:
        return refusals.build_refusal(
            limit,
            reason,
            spent=spent,
            held=held,
            needed=least,
            model=model,
            resets_at=window_end(limit.window, current_time),
        )

    if measure == Measure.COST and estimate.cost is None:
        return refuse("no_price")
    if spent >= amount:
        return refuse("spent") if needed else None
    if least > amount:
        return refuse("too_large")
    if spent + held + needed <= amount:
        return None
    # A call in progress is sure to count as one; of the rest it may return some.
    if spent + least > amount or (measure == Measure.CALLS and spent + held >= amount):
        return refuse("spent")
    return refuse("busy") if held else None


def _for_counter(hold: Hold, pk: int, amounts: Mapping[str, int]) -> dict[str, int]:
    """Return what counts in this counter."""
    return {**amounts, "seconds": 0} if pk in hold.untimed else {**amounts}


def renew(hold: Hold, used: Used) -> None:
    """Keep a reservation while its call runs, with what it has used so far."""
    rows = BudgetHold.objects.filter(call=hold.call, is_counted=False)
    columns = _used_columns(used.amounts())
    seconds = columns.pop("used_seconds")
    expires_at = timezone.now() + timedelta(seconds=HOLD_SECONDS)
    rows.exclude(counter__in=hold.untimed).update(
        **columns, used_seconds=seconds, expires_at=expires_at
    )
    if hold.untimed:
        rows.filter(counter__in=hold.untimed).update(**columns, expires_at=expires_at)


def _used_columns(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return what a hold says about its call so far, besides that it is one."""
    return {
        MEASURES[key].used_column: amount for key, amount in amounts.items() if key != "calls"
    }


@retry_on_conflict
def settle(hold: Hold, used: Used) -> bool:
    """Count what a call has used, once, in the windows in which it was reserved.

    Returns whether it was counted now. What it used beyond its reservation is counted, too.
    """
    amounts = used.amounts()
    with transaction.atomic():
        counters.lock_rows(BudgetCounter.objects.filter(holds__call=hold.call))
        # Another process may have settled it or counted it as expired before this lock.
        rows = list(BudgetHold.objects.filter(call=hold.call).order_by("counter"))
        fresh = {row.counter_id for row in rows if not row.is_counted}
        counters.add(fresh - hold.untimed, amounts)
        counters.add(fresh & hold.untimed, {**amounts, "seconds": 0})
        for row in rows:
            if row.is_counted:
                # What it used beyond what was counted when its hold expired.
                uncounted = {
                    name: amount - getattr(row, MEASURES[name].used_column)
                    for name, amount in _for_counter(hold, row.counter_id, amounts).items()
                }
                counters.add([row.counter_id], uncounted)
        BudgetHold.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return bool(rows)
