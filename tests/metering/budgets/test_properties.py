"""Counters equal what calls used, in any order of calls, settlements and crashes."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.engine.errors import QuotaExceeded
from agents.metering.budgets import holds
from agents.metering.budgets.measures import Estimate, Used
from agents.metering.budgets.payers import Payer
from agents.models import BudgetCounter, BudgetHold, Quota

pytestmark = pytest.mark.django_db

MOST = 100
STEPS = st.one_of(
    st.tuples(st.just("reserve"), st.integers(1, 60)),
    st.tuples(st.just("settle"), st.integers(0, 70)),
    st.tuples(st.just("again"), st.integers(0, 70)),
    st.tuples(st.just("renew"), st.integers(0, 30)),
    st.tuples(st.just("wait"), st.sampled_from([1, 100, 40_000])),
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEPS, max_size=12))
def test_counters_are_what_calls_used_and_limits_hold(person, monkeypatch, steps):
    for model in (BudgetHold, BudgetCounter, Quota):
        model.objects.all().delete()
    Quota.objects.create(user=person, measure="tokens", window="day", limit=MOST)
    now = datetime(2026, 5, 5, 12, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: now)
    opened, used = [], {}  # holds in progress; what each call has used, by its day
    done = []
    for what, amount in steps:
        if what == "wait":
            now += timedelta(seconds=amount)
        elif what == "reserve":
            try:
                hold = holds.reserve(Payer(user=person.pk), Estimate(tokens=amount))
            except QuotaExceeded:
                continue
            day = [total for (_call, at), total in used.items() if at == now.date()]
            assert sum(day) < MOST  # never begun after the limit is reached
            opened.append((hold, now.date()))
            used[opened[-1]] = 0
        elif what == "renew" and opened:
            holds.renew(opened[0][0], Used(tokens=amount))
        elif what == "settle" and opened:
            done.append(opened.pop(0))
            holds.settle(done[-1][0], Used(tokens=amount))
            used[done[-1]] = amount
        elif what == "again" and done:
            assert not holds.settle(done[0][0], Used(tokens=amount))
    for call, day in opened:
        holds.settle(call, Used(tokens=5))
        used[call, day] = 5

    for counter in BudgetCounter.objects.all():
        of_day = [total for (_call, day), total in used.items() if day == counter.start.date()]
        assert (counter.tokens, counter.calls) == (sum(of_day), len(of_day))
    assert not BudgetHold.objects.exists()
