"""A model that is called inside a tool call: its time counts once, its tokens as always."""

import asyncio
from contextvars import Context
from datetime import timedelta

import pytest
from django.utils import timezone

from agents.engine import FallbackResult, ToolResult
from agents.engine.errors import QuotaExceeded
from agents.metering.budgets import Payer, gate, holds, limits
from agents.metering.budgets.gate import Budget
from agents.metering.budgets.measures import Estimate, Meter, Used
from agents.models import BudgetCounter, BudgetHold, Quota
from agents.tools.calculator import CalculatorTool
from tests.language_models import make_model

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
SECOND = 1_000


def size():
    return Estimate(tokens=5, seconds=30 * SECOND)


@pytest.fixture
def payer(person, agent, monkeypatch):
    """A user whose calls take a second each."""
    monkeypatch.setattr(Meter, "milliseconds", property(lambda meter: SECOND))
    row = make_model("m", "demo")
    for owner in ({"user": person}, {"agent": agent}, {"language_model": row}):
        Quota.objects.create(measure="seconds", window="day", limit=12, **owner)
    limits.ROWS.refresh()
    return Payer(user=person.pk, agent=agent.pk)


async def call_tool(payer, work=None):
    """Make a tool call that does some work."""

    async def make_call(tool, input):
        if work is not None:
            await work()
        return FallbackResult(result=ToolResult("Done."))

    return await Budget(payer).tool_call(CalculatorTool(), {}, make_call)


async def seconds():
    rows = {row.scope.partition(":")[0]: row async for row in BudgetCounter.objects.all()}
    return {scope: (row.seconds, row.tokens, row.calls) for scope, row in rows.items()}


async def test_the_time_of_a_model_in_a_tool_counts_once_and_for_the_model(payer):
    async def use_model():
        async with gate.call(size, model="m", payer=payer) as meter:
            meter.tokens = 7

    await call_tool(payer, use_model)

    once = (SECOND, 7, 2)
    assert await seconds() == {"user": once, "agent": once, "model": (SECOND, 7, 1)}


async def test_calls_one_after_another_count_both(payer):
    await call_tool(payer)
    await _call(payer)

    assert (await seconds())["user"][0] == 2 * SECOND


async def test_a_model_in_a_tool_is_not_refused_for_time_that_the_tool_holds(payer):
    async def use_model():
        await _call(payer)
        with pytest.raises(QuotaExceeded):  # another call doesn't fit
            await asyncio.create_task(_call(payer), context=Context())

    assert not (await call_tool(payer, use_model)).result.is_error


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
