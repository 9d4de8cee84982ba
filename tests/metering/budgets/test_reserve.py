"""Reservations: admitted within limits, counted once, whatever happens to the call."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connections
from django.utils import timezone

from agents.engine.errors import QuotaExceeded
from agents.metering import budgets
from agents.metering.budgets import Payer, holds
from agents.metering.budgets.measures import Estimate, Used
from agents.models import BudgetCounter, BudgetHold, Quota, Run

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

CENT = 10_000


def limit(amount, measure="cost", window="day", **owner):
    return Quota.objects.create(measure=measure, window=window, limit=amount, **owner)


def cents(number, least=0):
    return Estimate(cost=number * CENT, tokens=100, least_cost=least * CENT)


def refusal(payer, estimate, **about):
    with pytest.raises(QuotaExceeded) as refused:
        holds.reserve(payer, estimate, **about)
    return refused.value.refusal


def test_without_a_limit_nothing_is_reserved_and_nothing_is_asked(
    person, django_assert_num_queries
):
    with django_assert_num_queries(0):
        assert holds.reserve(Payer(user=person.pk), cents(1)) is None


def test_what_calls_in_progress_hold_is_not_given_twice(person):
    limit(10 * CENT, user=person)
    payer = Payer(user=person.pk)
    hold = holds.reserve(payer, cents(6))

    found = refusal(payer, cents(6))
    assert (found.reason, found.spent, found.held) == ("busy", 0, 6 * CENT)

    holds.settle(hold, Used(cost=2 * CENT))
    assert holds.reserve(payer, cents(6))


def test_a_call_is_counted_once_and_also_above_what_it_held(person):
    limit(10 * CENT, user=person)
    hold = holds.reserve(Payer(user=person.pk), cents(2))

    assert holds.settle(hold, Used(cost=30 * CENT, tokens=7))
    assert not holds.settle(hold, Used(cost=30 * CENT))

    counter = BudgetCounter.objects.get()
    assert (counter.cost, counter.tokens, counter.calls) == (30 * CENT, 7, 1)
    assert not BudgetHold.objects.exists()
    found = refusal(Payer(user=person.pk), cents(1))
    assert (found.reason, found.spent, found.limit) == ("spent", 30 * CENT, 10 * CENT)
    assert found.resets_at > timezone.now()


def test_a_small_limit_admits_one_call_that_may_use_more(person):
    limit(10 * CENT, user=person)
    payer = Payer(user=person.pk)

    assert holds.reserve(payer, cents(500))
    assert refusal(payer, cents(500)).reason == "busy"


def test_a_call_that_can_never_fit_is_told_so(person):
    limit(10 * CENT, user=person)
    found = refusal(Payer(user=person.pk), cents(50, least=20))
    assert (found.reason, found.is_final, found.needed) == ("too_large", True, 20 * CENT)


def test_an_unknown_price_is_not_free(person):
    limit(10 * CENT, user=person)
    with pytest.raises(QuotaExceeded, match="openai/x has no known price") as refused:
        holds.reserve(Payer(user=person.pk), Estimate(cost=None), model="openai/x")
    assert "0 if it's free" in refused.value.advice


def test_an_expired_hold_is_counted_with_what_was_known_and_settled_late(person):
    limit(10 * CENT, user=person)
    payer = Payer(user=person.pk)
    hold = holds.reserve(payer, cents(9, least=1))
    holds.renew(hold, Used(cost=3 * CENT, tokens=30))
    BudgetHold.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    [state] = budgets.read(person.pk)
    assert (state.spent, state.held) == (3 * CENT, 0)
    assert holds.reserve(payer, cents(7))  # the crash didn't block the rest
    assert BudgetCounter.objects.get().cost == 3 * CENT

    holds.settle(hold, Used(cost=4 * CENT, tokens=40))
    counter = BudgetCounter.objects.get()
    assert (counter.cost, counter.tokens, counter.calls) == (4 * CENT, 40, 1)


def test_any_scope_refuses_and_then_nothing_is_held(person, agent, stranger):
    limit(100 * CENT, user=person)
    limit(5 * CENT, agent=agent)
    found = refusal(Payer(user=person.pk, agent=agent.pk), cents(9, least=6))

    assert (found.scope, found.name) == ("agent", agent.name)
    assert not BudgetHold.objects.exists()
    assert holds.reserve(Payer(user=stranger.pk, agent=agent.pk), cents(3))


def test_a_shared_group_limit_is_used_together(person, stranger):
    group = Group.objects.create(name="Sales")
    for one in (person, stranger):
        one.groups.add(group)
    limit(10 * CENT, group=group, is_shared=True)
    hold = holds.reserve(Payer(user=person.pk), cents(8))
    holds.settle(hold, Used(cost=10 * CENT))

    found = refusal(Payer(user=stranger.pk), cents(1))
    assert (found.scope, found.name, found.spent) == ("group", "Sales", 10 * CENT)


def test_a_new_limit_begins_with_what_runs_have_used(person):
    Run.objects.create(user=person, query="q", cost=0.08, prompt_tokens=10, status="completed")
    limit(10 * CENT, user=person)

    [state] = budgets.read(person.pk)
    assert (state.spent, state.left) == (8 * CENT, 2 * CENT)
    assert refusal(Payer(user=person.pk), cents(9, least=3)).spent == 8 * CENT


def test_a_limit_that_comes_back_knows_what_was_used_meanwhile(person):
    first = limit(10 * CENT, user=person)
    holds.settle(holds.reserve(Payer(user=person.pk), cents(1)), Used(cost=CENT))
    first.delete()
    Run.objects.create(user=person, query="q", cost=0.09, prompt_tokens=1, status="completed")

    limit(10 * CENT, user=person)
    assert holds.reserve(Payer(user=person.pk), cents(1))
    assert BudgetCounter.objects.get().cost == 9 * CENT


def test_racing_calls_for_the_last_cent_are_admitted_once(person):
    limit(3 * CENT, user=person)
    limit(100, measure="calls", window="minute", user=person)

    def call(_number):
        try:
            hold = holds.reserve(Payer(user=person.pk), cents(1, least=1))
            return holds.settle(hold, Used(cost=CENT))
        except QuotaExceeded:
            return False
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as callers:
        admitted = sum(callers.map(call, range(18)))

    assert admitted == 3
    assert BudgetCounter.objects.get(window="day").cost == 3 * CENT
