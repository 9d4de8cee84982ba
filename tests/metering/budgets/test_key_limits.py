"""Limits of API keys: counted for the runs that a program starts, and refused by name."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.access import api_keys
from agents.engine.errors import QuotaExceeded
from agents.metering import budgets
from agents.metering.budgets import limits, recorded, scopes
from agents.metering.budgets.payers import Payer, payer_of
from agents.metering.budgets.windows import window_start
from agents.models import BudgetCounter, Quota, Run

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def key(person):
    return api_keys.create(person, "CI", ["ask"])[0]


def limit(key, amount, measure="tokens", window="day"):
    row = Quota.objects.create(api_key=key, measure=measure, window=window, limit=amount)
    limits.ROWS.refresh()
    return row


async def ask(person, agent, key=None):
    with api_keys.using(key):
        prepared = await sync_to_async(runs.prepare)(
            query="2+2?", topic=f"t{key}", user=person, agent=agent
        )
    runs.launch(prepared)
    await runs.wait(prepared)
    return await Run.objects.aget(pk=prepared.pk)


async def test_a_keys_runs_are_counted_for_it_and_others_arent(
    person, agent, key, run_executor
):
    await sync_to_async(limit)(key, 100_000)
    run = await ask(person, agent, key)
    await ask(person, agent)

    counter = await BudgetCounter.objects.aget(scope=f"key:{key.pk}")
    assert counter.tokens == run.prompt_tokens + run.completion_tokens > 0


async def test_a_run_that_its_keys_limit_refuses_says_so(person, agent, key, run_executor):
    await sync_to_async(limit)(key, 1, "calls")
    run = await ask(person, agent, key)

    assert run.stopped_reason == "budget_exceeded"
    assert run.detail.startswith("This API key has reached its limit of 1 call per day")
    assert run.advice.startswith("The limit resets on")


@pytest.mark.parametrize("measure", ["runs", "messages"])
def test_starts_are_counted_where_the_program_starts_them(person, agent, key, measure):
    limit(key, 1, measure)
    starts = {"runs": budgets.start_run, "messages": budgets.count_message}[measure]

    starts(person)
    starts(person)
    with api_keys.using(key):
        starts(person)
        with pytest.raises(QuotaExceeded) as refused:
            starts(person)
    assert refused.value.refusal.scope == "key"
    assert refused.value.refusal.name == "CI"


def test_a_limit_that_begins_within_a_month_counts_what_was_recorded(person, agent, key):
    Run.objects.create(
        user=person, agent=agent, query="x", topic="k", api_key=key, prompt_tokens=5,
        completion_tokens=2, status="completed",
    )  # fmt: skip
    row = limit(key, 10, window="month")

    [state] = budgets.read_limits([scopes.counted_limit(row)])
    assert (state.spent, state.left) == (7, 3)
    assert recorded.read("key:0", window_start("month"))["tokens"] == 0


def test_a_row_is_described_as_its_keys(key):
    row = limit(key, 10)

    assert scopes.scope_of(row) == "key"
    assert scopes.owner_name(row) == scopes.title(row) == "CI"
    [of_key] = limits.limits_for(Payer(key=key.pk))
    assert of_key == scopes.counted_limit(row)
    assert limits.limits_for(Payer(key=key.pk + 1)) == []
    assert limits.has_limits({"tokens"})
    assert of_key in limits.saved_limits()


def test_a_run_knows_the_key_that_pays_without_a_query(person, agent, key):
    run = Run(user=person, agent=agent, api_key=key, pk=1)

    assert payer_of(run) == Payer(user=person.pk, agent=agent.pk, run=1, key=key.pk)
    assert payer_of(Run(user=person, agent=agent, pk=1)).key is None


def test_without_limits_a_start_with_a_key_asks_nothing(
    person, agent, key, django_assert_num_queries
):
    limits.ROWS.refresh()
    with django_assert_num_queries(0), api_keys.using(key):
        budgets.start_run(person, agent)
        budgets.count_message(person)
