"""A model that is called inside a tool call: its time counts once, its tokens as always."""

import asyncio
from contextvars import Context
from datetime import timedelta

import pytest
from django.utils import timezone

from agents.budgets import Payer, gate, holds, limits
from agents.budgets.gate import Meter, ToolGate
from agents.budgets.holds import Estimate, Used
from agents.engine.errors import QuotaExceeded
from agents.models import BudgetCounter, BudgetHold, LanguageModel, Quota

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
SECOND = 1_000


def size():
    return Estimate(tokens=5, seconds=30 * SECOND)


@pytest.fixture
def payer(person, agent, monkeypatch):
    """A user whose calls take a second each."""
    monkeypatch.setattr(Meter, "milliseconds", property(lambda meter: SECOND))
    row = LanguageModel.objects.create(label="m", model="demo")
    for owner in ({"user": person}, {"agent": agent}, {"language_model": row}):
        Quota.objects.create(measure="seconds", window="day", limit=12, **owner)
    limits.ROWS.refresh()
    return Payer(user=person.pk, agent=agent.pk)


async def seconds():
    rows = {row.scope.partition(":")[0]: row async for row in BudgetCounter.objects.all()}
    return {scope: (row.seconds, row.tokens, row.calls) for scope, row in rows.items()}


async def test_the_time_of_a_model_in_a_tool_counts_once_and_for_the_model(payer):
    tool, model = ToolGate(payer).tool_call("search"), gate.call(size, model="m", payer=payer)
    async with tool, model as meter:
        meter.tokens = 7

    once = (SECOND, 7, 2)
    assert await seconds() == {"user": once, "agent": once, "model": (SECOND, 7, 1)}


async def test_calls_one_after_another_count_both(payer):
    async with ToolGate(payer).tool_call("search"):
        pass
    async with gate.call(size, model="m", payer=payer):
        pass

    assert (await seconds())["user"][0] == 2 * SECOND


async def test_a_model_in_a_tool_is_not_refused_for_time_that_the_tool_holds(payer):
    async with ToolGate(payer).tool_call("search"):
        async with gate.call(size, model="m", payer=payer):
            pass
        with pytest.raises(QuotaExceeded):  # another call doesn't fit
            await asyncio.create_task(_call(payer), context=Context())


async def _call(payer):
    async with gate.call(size, model="m", payer=payer):
        pass


def test_a_crash_counts_the_time_of_both_once(payer):
    outer = holds.reserve(payer, Estimate(seconds=10 * SECOND))
    inner = holds.reserve(payer, size(), timed=outer.counters)
    for hold, used in ((outer, Used(seconds=4 * SECOND)), (inner, Used(seconds=3 * SECOND))):
        holds.renew(hold, used)
    BudgetHold.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    holds.settle(holds.reserve(payer, Estimate()), Used())

    assert set(BudgetCounter.objects.values_list("seconds", flat=True)) == {4 * SECOND}
