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
from agents.models import BudgetCounter, BudgetHold, Quota

from . import counters, limits, refusals
from .counters import Count
from .limits import CALL_MEASURES, Limit
from .payers import Payer
from .windows import window_end

Measure = Quota.Measure
# A live process renews its holds three times in this time; see `gate`.
HOLD_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a call will use at least, and what it may use; cost in millionths of a dollar.

    The cost is None if the model has no known price.
    """

    tokens: int = 0
    cost: int | None = 0
    seconds: int = 0  # in ms, as in counters
    least_tokens: int = 0  # the input
    least_cost: int = 0
    calls: int = 1

    def held(self) -> dict[str, int]:
        return {
            "calls": self.calls,
            "tokens": self.tokens,
            "cost": self.cost or 0,
            "seconds": self.seconds,
        }

    def least(self) -> dict[str, int]:
        return {
            "calls": self.calls,
            "tokens": self.least_tokens,
            "cost": self.least_cost,
            "seconds": 0,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a call has used; cost in millionths of a dollar, time in ms."""

    tokens: int = 0
    cost: int = 0
    seconds: int = 0


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
    found = limits.limits_for(payer, groups_of(payer.user), model=model, tool=tool)
    return [limit for limit in found if limit.measure in CALL_MEASURES]


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
    found = find_limits(payer, model=model, tool=tool)
    if not found:
        return None
    call = uuid.uuid4()
    now = timezone.now()
    with transaction.atomic():
        counts = counters.lock(found, now)
        refused = [
            refusal
            for limit in found
            for count in [counts[counters.counter_key(limit, now)]]
            if not (limit.measure == Measure.SECONDS and count.pk in timed)
            and (refusal := _refusal(limit, count, estimate, now, model))
        ]
        if refused:
            raise refusals.error(refusals.most_lasting(refused))
        pks = frozenset(count.pk for count in counts.values())
        hold = Hold(call=call, estimate=estimate, counters=pks, untimed=pks & timed)
        _save_holds(hold, now, payer.run)
    return hold


def _refusal(
    limit: Limit, count: Count, estimate: Estimate, now: datetime, model: str
) -> Refusal | None:
    """Return why a limit refuses a call, or None.

    A call is admitted if what it may use fits, or if it is the only one and what it uses at
    least fits: so a limit is exceeded by one call at most, and none waits for what it would
    hardly ever use.
    """
    most = limit.amount or 0
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
            resets_at=window_end(limit.window, now),
        )

    if measure == Measure.COST and estimate.cost is None:
        return refuse("no_price")
    if spent >= most:
        return refuse("spent") if needed else None
    if least > most:
        return refuse("too_large")
    if spent + held + needed <= most:
        return None
    # A call in progress is sure to count as one; of the rest it may return some.
    if spent + least > most or (measure == Measure.CALLS and spent + held >= most):
        return refuse("spent")
    return refuse("busy") if held else None


def _save_holds(hold: Hold, now: datetime, run: int | None) -> None:
    estimate = hold.estimate
    rows = [
        BudgetHold(
            call=hold.call,
            counter_id=pk,
            run=run,
            used_tokens=estimate.least_tokens,
            used_cost=estimate.least_cost,
            expires_at=now + timedelta(seconds=HOLD_SECONDS),
            **_for_counter(hold, pk, estimate.held()),
        )
        for pk in sorted(hold.counters)
    ]
    BudgetHold.objects.bulk_create(rows)


def _for_counter(hold: Hold, pk: int, amounts: Mapping[str, int]) -> dict[str, int]:
    """Return what counts in this counter."""
    return {**amounts, "seconds": 0} if pk in hold.untimed else {**amounts}


def renew(hold: Hold, used: Used) -> None:
    """Keep a reservation while its call runs, with what it has used so far."""
    rows = BudgetHold.objects.filter(call=hold.call, is_counted=False)
    rows.update(
        used_tokens=used.tokens,
        used_cost=used.cost,
        expires_at=timezone.now() + timedelta(seconds=HOLD_SECONDS),
        **({} if hold.untimed else {"used_seconds": used.seconds}),
    )
    if hold.untimed:
        rows.exclude(counter__in=hold.untimed).update(used_seconds=used.seconds)


@retry_on_conflict
def settle(hold: Hold, used: Used, *, calls: int = 1) -> bool:
    """Count what a call has used, once, in the windows in which it was reserved.

    Returns whether it was counted now. What it used beyond its reservation is counted, too.
    """
    amounts = {
        "calls": calls,
        "tokens": used.tokens,
        "cost": used.cost,
        "seconds": used.seconds,
    }
    with transaction.atomic():
        counters.lock_rows(BudgetCounter.objects.filter(holds__call=hold.call))
        # Another process may have settled it or counted it as expired before this lock.
        rows = list(BudgetHold.objects.filter(call=hold.call).order_by("counter"))
        fresh = {row.counter_id for row in rows if not row.is_counted}
        counters.add(fresh - hold.untimed, amounts)
        counters.add(fresh & hold.untimed, {**amounts, "seconds": 0})
        for row in rows:
            if row.is_counted:
                own = _for_counter(hold, row.counter_id, amounts)
                counters.add([row.counter_id], _uncounted(row, own))
        BudgetHold.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return bool(rows)


def _uncounted(row: BudgetHold, amounts: Mapping[str, int]) -> dict[str, int]:
    """Return what a call used beyond what was counted when its hold expired."""
    return {name: amounts[name] - getattr(row, counters.USED[name]) for name in amounts}
